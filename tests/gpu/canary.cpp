// SPDX-License-Identifier: Apache-2.0
// The bodies of canary.hpp.
#include "canary.hpp"

#include <algorithm>
#include <cmath>

#include "support/lies_in_view.hpp"

namespace bursar::test {
namespace {

constexpr std::size_t kMostBlocks = 64;
constexpr Bytes kHostSize{1u << 20};
constexpr Bytes kPatrolled{8u << 20};
constexpr Bytes kStitched{2u << 20};    // smaller blocks lie in no view
constexpr std::size_t kLookEvery = 16;  // of those: a snapshot is slow

void freed(const result<void>& outcome) {
  if (!outcome) throw Error(outcome.failure());
}

std::byte* at(void* memory, Bytes offset) { return static_cast<std::byte*>(memory) + offset.count; }

}  // namespace

Canary::Canary(CachingAllocator& allocator, MismatchCounter& mismatches, CanaryTally& tally,
               const CanaryOptions& options, std::uint64_t seed, int number)
    : allocator_(allocator),
      mismatches_(mismatches),
      tally_(tally),
      options_(options),
      how_(options.early ? Launch::programmatic : Launch::ordinary),
      random_(seed + static_cast<std::uint64_t>(number)),
      last_value_(static_cast<std::uint32_t>(number) << 24) {
  for (void*& memory : host_) {
    check(cudaHostAlloc(&memory, kHostSize.count, cudaHostAllocDefault));
  }
}

Canary::~Canary() {
  for (const Stream& stream : streams_) cudaStreamSynchronize(stream.raw());
  for (void* memory : host_) cudaFreeHost(memory);
}

void Canary::run(std::chrono::milliseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 200; ++i) step();
    // Bounds how far the host runs ahead; the other streams keep theirs.
    streams_[below(kStreams)].synchronize();
  }
  while (!blocks_.empty()) free_one();
  for (const Stream& stream : streams_) freed(allocator_.retire_stream(stream.handle()));
}

/// Log-uniform within three octaves somewhere between 512 B and 32 MiB, in whole words. The octaves
/// change from time to time, so that what suited the sizes before must be moved and stitched.
Bytes Canary::random_size() {
  using Real = std::uniform_real_distribution<double>;
  if (below(128) == 0) least_bits_ = Real(9, 22)(random_);
  const double bits = Real(least_bits_, least_bits_ + 3)(random_);
  return round_down(Bytes{static_cast<std::uint64_t>(std::exp2(bits))}, Bytes{4});
}

/// Never four equal bytes, which are memset's.
std::uint32_t Canary::next_value() {
  while (++last_value_ % 0x0101'0101u == 0) {
  }
  return last_value_;
}

void Canary::step() {
  if (below(2000) == 0) {
    allocator_.trim();
    ++tally_.trims;
  } else if (below(50) == 0) {
    allocator_.reset_peaks();  // growth up to the peak would be preferred to stitching
  } else if (blocks_.size() < kMostBlocks && below(2) == 0) {
    take_one();
  } else if (!blocks_.empty()) {
    free_one();
  }
}

void* Canary::take(Bytes size, const Stream& stream) {
  const result<void*> memory = allocator_.try_allocate(size.count, {.stream = stream.handle()});
  if (!memory) ++tally_.refused;
  return memory ? *memory : nullptr;
}

void Canary::take_one() {
  Block block{nullptr, random_size(), next_value(), below(kStreams)};
  block.memory = take(block.size, streams_[block.stream]);
  if (block.memory == nullptr) return;
  fill_block(block);
  blocks_.push_back(block);
  tally_.bytes += block.size.count;
  ++tally_.blocks;
  if (block.size < kStitched || below(kLookEvery) != 0) return;
  ++tally_.looked_at;
  if (lies_in_view(allocator_, block.memory)) ++tally_.in_views;
}

void Canary::fill_block(Block& block) {
  const Stream& stream = streams_[block.stream];
  const std::size_t way = options_.copies ? below(4) : 0;
  if (way == 1) {  // memory that is freed as soon as it was copied from
    void* source = take(block.size, stream);
    if (source == nullptr) return fill(block.memory, block.size, block.value, stream, how_);
    fill(source, block.size, block.value, stream, how_);
    check(cudaMemcpyAsync(block.memory, source, block.size.count, cudaMemcpyDeviceToDevice,
                          stream.raw()));
    return free(source);
  }
  if (way == 2) {
    const Bytes begin = std::min(block.size, kHostSize);
    void* host = host_[block.stream];
    fill(host, begin, block.value, stream, how_);
    check(cudaMemcpyAsync(block.memory, host, begin.count, cudaMemcpyHostToDevice, stream.raw()));
    if (block.size == begin) return;
    return fill(at(block.memory, begin), block.size - begin, block.value, stream, how_);
  }
  if (way == 3) {
    block.value = 0x0101'0101u * (block.value % 256);
    return check(cudaMemsetAsync(block.memory, static_cast<int>(block.value & 255u),
                                 block.size.count, stream.raw()));
  }
  fill(block.memory, block.size, block.value, stream, how_);
}

void Canary::verify(const Block& block, const Stream& stream) {
  if (options_.copies && below(2) == 0) return verify_by_copy(block, stream);
  mismatches_.expect(block.memory, block.size, block.value, stream, how_);
}

void Canary::verify_by_copy(const Block& block, const Stream& stream) {
  if (void* copy = below(2) == 0 ? take(block.size, stream) : nullptr; copy != nullptr) {
    check(cudaMemcpyAsync(copy, block.memory, block.size.count, cudaMemcpyDeviceToDevice,
                          stream.raw()));
    mismatches_.expect(copy, block.size, block.value, stream, how_);
    return free(copy);
  }
  const Bytes begin = std::min(block.size, kHostSize);
  void* host = host_[&stream - streams_];
  check(cudaMemcpyAsync(host, block.memory, begin.count, cudaMemcpyDeviceToHost, stream.raw()));
  mismatches_.expect(host, begin, block.value, stream, how_);
  if (block.size == begin) return;
  mismatches_.expect(at(block.memory, begin), block.size - begin, block.value, stream, how_);
}

void Canary::free(void* memory) { freed(allocator_.try_deallocate(memory)); }

/// Verifies a random block on its home stream or, after a hand-over, on another; then frees it in
/// one of the ways there are.
void Canary::free_one() {
  std::swap(blocks_[below(blocks_.size())], blocks_.back());
  const Block block = blocks_.back();
  blocks_.pop_back();
  const Stream& home = streams_[block.stream];
  const Stream& other = streams_[(block.stream + 1) % kStreams];
  switch (below(3)) {
    case 0: verify(block, home); return free(block.memory);
    case 1:
      let_follow(home, other);
      verify(block, other);
      return freed(allocator_.try_deallocate(block.memory, other.handle()));
    default:
      let_follow(home, other);
      verify(block, other);
      freed(allocator_.record_stream(block.memory, other.handle()));
      return free(block.memory);
  }
}

Patrol::Patrol(CachingAllocator& allocator, MismatchCounter& mismatches,
               std::chrono::milliseconds most)
    : allocator_(allocator),
      memory_(allocator.allocate(kPatrolled.count, {.stream = stream_.handle()})) {
  void* notes = nullptr;
  check(cudaHostAlloc(&notes, 2 * sizeof *rounds_, cudaHostAllocMapped));
  rounds_ = static_cast<unsigned long long*>(notes);
  rounds_[0] = rounds_[1] = 0;
  end_ = reinterpret_cast<volatile int*>(rounds_ + 1);
  const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(most).count();
  launch_patrol(static_cast<std::uint32_t*>(memory_), kPatrolled.count / sizeof(std::uint32_t),
                end_, static_cast<std::uint64_t>(limit), rounds_, mismatches.on_device(),
                stream_.raw());
}

Patrol::~Patrol() {
  *end_ = 1;
  cudaStreamSynchronize(stream_.raw());
  cudaFreeHost(rounds_);
}

unsigned long long Patrol::finish() {
  *end_ = 1;
  stream_.synchronize();
  allocator_.deallocate(memory_);
  freed(allocator_.retire_stream(stream_.handle()));
  return *rounds_;
}

}  // namespace bursar::test
