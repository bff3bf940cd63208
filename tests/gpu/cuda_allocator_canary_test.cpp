// SPDX-License-Identifier: Apache-2.0
// The byte canary: threads and streams churn random blocks, each filled with its own number by a
// kernel and read back whole by another before it is freed, with trims in between. One byte handed
// out twice at the wrong moment shows as a wrong word.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {

constexpr int kThreads = 4;
constexpr int kStreamsPerThread = 2;
constexpr std::size_t kBlocksPerThread = 64;
constexpr int kSeconds = 15;

/// BURSAR_SEED where set, so that a failure can be repeated; else a new one.
std::uint64_t seed() {
  const char* given = std::getenv("BURSAR_SEED");
  return given != nullptr ? std::stoull(given) : std::random_device{}();
}

/// BURSAR_CANARY_SECONDS where set: under compute-sanitizer a shorter run has to do.
int run_seconds() {
  const char* given = std::getenv("BURSAR_CANARY_SECONDS");
  return given != nullptr ? std::stoi(given) : kSeconds;
}

/// One thread's part of the churn, on streams of its own.
class Churn {
 public:
  Churn(CachingAllocator& allocator, MismatchCounter& mismatches, std::uint64_t seed, int number)
      : allocator_(allocator),
        mismatches_(mismatches),
        random_(seed + static_cast<std::uint64_t>(number)),
        next_value_(static_cast<std::uint32_t>(number) << 24) {}

  void run() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(run_seconds());
    while (std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 200; ++i) step();
      // Bounds how far the host runs ahead; the other streams keep theirs.
      streams_[below(kStreamsPerThread)].synchronize();
    }
    while (!blocks_.empty()) free_one();
    for (const Stream& stream : streams_) retire(stream);
  }

  std::uint64_t filled = 0;
  std::uint64_t refused = 0;

 private:
  struct Block {
    void* memory;
    Bytes size;
    std::uint32_t value;
    std::size_t stream;
  };

  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

  /// Log-uniform from 512 B to 32 MiB, in whole words.
  Bytes random_size() {
    const double bits = std::uniform_real_distribution<double>(9, 25)(random_);
    return round_down(Bytes{static_cast<std::uint64_t>(std::exp2(bits))}, Bytes{4});
  }

  void step() {
    if (below(500) == 0) {
      allocator_.trim();
    } else if (blocks_.size() < kBlocksPerThread && below(2) == 0) {
      take_one();
    } else if (!blocks_.empty()) {
      free_one();
    }
  }

  void take_one() {
    Block block{nullptr, random_size(), ++next_value_, below(kStreamsPerThread)};
    const Stream& stream = streams_[block.stream];
    const auto memory = allocator_.try_allocate(block.size.count, {.stream = stream.handle()});
    if (!memory) {
      ++refused;
      return;
    }
    block.memory = *memory;
    fill(block.memory, block.size, block.value, stream);
    blocks_.push_back(block);
    ++filled;
  }

  /// Verifies a random block on its home stream or, after a hand-over, on another; then frees it
  /// in one of the ways there are.
  void free_one() {
    std::swap(blocks_[below(blocks_.size())], blocks_.back());
    const Block block = blocks_.back();
    blocks_.pop_back();
    const Stream& home = streams_[block.stream];
    const Stream& other = streams_[(block.stream + 1) % kStreamsPerThread];
    switch (below(3)) {
      case 0:
        mismatches_.expect(block.memory, block.size, block.value, home);
        return freed(allocator_.try_deallocate(block.memory));
      case 1:
        let_follow(home, other);
        mismatches_.expect(block.memory, block.size, block.value, other);
        return freed(allocator_.try_deallocate(block.memory, other.handle()));
      default:
        let_follow(home, other);
        mismatches_.expect(block.memory, block.size, block.value, other);
        freed(allocator_.record_stream(block.memory, other.handle()));
        return freed(allocator_.try_deallocate(block.memory));
    }
  }

  /// What `second` does from now on comes after what `first` was given so far.
  static void let_follow(const Stream& first, const Stream& second) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaEventRecord(event, first.raw()));
    check(cudaStreamWaitEvent(second.raw(), event, 0));
    check(cudaEventDestroy(event));
  }

  static void freed(const result<void>& outcome) {
    if (!outcome) throw Error(outcome.failure());
  }
  void retire(const Stream& stream) { freed(allocator_.retire_stream(stream.handle())); }

  CachingAllocator& allocator_;
  MismatchCounter& mismatches_;
  std::mt19937_64 random_;
  std::uint32_t next_value_;
  Stream streams_[kStreamsPerThread];
  std::vector<Block> blocks_;
};

}  // namespace

TEST_CASE("no byte is handed out while its former owner may still use it",
          "[allocator][cuda][gpu][canary][memcheck]") {
  const std::uint64_t chosen = seed();
  std::printf("canary: BURSAR_SEED=%llu\n", static_cast<unsigned long long>(chosen));
  CachingAllocator allocator(gpu_driver(), gpu_options());
  MismatchCounter mismatches;
  std::vector<std::unique_ptr<Churn>> churns;
  for (int i = 0; i < kThreads; ++i) {
    churns.push_back(std::make_unique<Churn>(allocator, mismatches, chosen, i));
  }
  std::vector<std::thread> threads;
  for (auto& churn : churns) threads.emplace_back([&churn] { churn->run(); });
  for (std::thread& thread : threads) thread.join();

  std::uint64_t filled = 0;
  for (const auto& churn : churns) {
    filled += churn->filled;
    CHECK(churn->refused == 0);
  }
  const AllocatorStats stats = allocator.stats();
  std::printf("canary: %llu blocks, %llu extents moved, peak %llu MiB\n",
              static_cast<unsigned long long>(filled),
              static_cast<unsigned long long>(stats.extents_moved),
              static_cast<unsigned long long>(stats.reserved_peak.count >> 20));
  CHECK(filled > (run_seconds() < kSeconds ? 50u : 1000u));
  CHECK(mismatches.total() == 0);
  CHECK(stats.live_blocks == 0);
  CHECK(allocator.validate().ok());
}
