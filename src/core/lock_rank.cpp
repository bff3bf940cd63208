// SPDX-License-Identifier: Apache-2.0
// The record of which ranks the calling thread holds. A set is enough: two mutexes of one rank are
// never held together. It is trivially destructible, so that late thread-local destructors may
// still free blocks.
#include <bitset>
#include <type_traits>

#include <bursar/core/check.hpp>
#include <bursar/core/lock_rank.hpp>

namespace bursar {
inline namespace v0 {
namespace {

using HeldRanks = std::bitset<128>;
static_assert(std::is_trivially_destructible_v<HeldRanks>);

constinit thread_local HeldRanks held_ranks;

constexpr std::size_t bit_of(LockRank rank) { return static_cast<std::size_t>(rank); }

}  // namespace

void lock_rank_acquired(LockRank rank) noexcept {
  BURSAR_CHECK(1, no_lock_held_from(rank));
  held_ranks[bit_of(rank)] = true;
}

void lock_rank_released(LockRank rank) noexcept {
  BURSAR_CHECK(1, held_ranks[bit_of(rank)]);
  held_ranks[bit_of(rank)] = false;
}

bool no_lock_held_from(LockRank rank) noexcept { return (held_ranks >> bit_of(rank)).none(); }

}  // namespace v0
}  // namespace bursar
