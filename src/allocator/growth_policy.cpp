// SPDX-License-Identifier: Apache-2.0
// The arithmetic of growing.
#include <bursar/allocator/growth_policy.hpp>

#include <algorithm>
#include <bit>

namespace bursar {
inline namespace v0 {

namespace {

Bytes with_guard(Bytes peak, std::uint32_t thousandths) { return peak + peak * thousandths / 1000; }

/// Idle memory of this part of the peak is more than the holes between blocks in use.
constexpr std::uint64_t kPlenty = 8;

/// The choices of the preset utilization where they are the thriftier ones.
AllocatorOptions tightened(const AllocatorOptions& options) {
  const AllocatorOptions thrifty = *preset_options("utilization");
  AllocatorOptions tight = options;
  tight.max_extent = std::min(options.max_extent, thrifty.max_extent);
  tight.growth_divisor = std::max(options.growth_divisor, thrifty.growth_divisor);
  tight.extent_share = std::max(options.extent_share, thrifty.extent_share);
  tight.guard = std::min(options.guard, thrifty.guard);
  tight.wide_guard = std::min(options.wide_guard, thrifty.wide_guard);
  tight.map_price = std::min(options.map_price, thrifty.map_price);
  tight.borrow_limit = {};  // what holds large extents together is not wanted now
  return tight;
}

}  // namespace

GrowthPolicy::GrowthPolicy(const AllocatorOptions& options)
    : options_(options), tight_(tightened(options)) {}

bool GrowthPolicy::within_guard(const GrowthState& state, Bytes more) const {
  if (state.exhausted) return false;
  return state.held + more <= with_guard(state.peak, in_force(state).guard);
}

bool GrowthPolicy::not_worth_it(const GrowthState& state, Bytes more, Bytes saved,
                                std::size_t maps) const {
  const AllocatorOptions& options = in_force(state);
  const Bytes price = state.peak * options.map_price / 100'000 * maps;
  return state.held + more <= with_guard(state.peak, options.wide_guard) && saved < price;
}

bool GrowthPolicy::borrows(const GrowthState& state, Bytes size, Bytes idle, Bytes page) const {
  if (size >= in_force(state).borrow_limit || within_guard(state, page)) return false;
  return idle >= state.peak / kPlenty;
}

Bytes GrowthPolicy::extent_size(const GrowthState& state, Bytes size, Bytes page) const {
  if (state.exhausted) return page;  // whatever is left will do
  const AllocatorOptions& options = in_force(state);
  // Streams that share memory peak at different times, so at the common peak each has holes that
  // the others must be able to use. Of the powers tried this one held the least (docs/design.md).
  const double share = 1 / (state.streams * state.streams);
  const auto scaled = [](Bytes bytes, double factor) {
    return Bytes{static_cast<std::uint64_t>(static_cast<double>(bytes.count) * factor)};
  };
  const Bytes wanted = std::max(scaled(state.peak / options.growth_divisor, share / state.streams),
                                scaled(size / options.extent_share, share));
  const Bytes most = std::min(wanted, options.max_extent);
  return most < page ? page : Bytes{std::bit_floor(most.count)};
}

}  // namespace v0
}  // namespace bursar
