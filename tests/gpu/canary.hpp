// SPDX-License-Identifier: Apache-2.0
// The byte canary: threads churn blocks on streams of their own. Each block is filled with its
// number in stream order and read back whole before it is freed, so one byte handed out twice at
// the wrong moment shows as a wrong word. What fills and reads, and what runs beside, varies.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>

#include "gpu_fixture.hpp"

namespace bursar::test {

struct CanaryOptions {
  /// Every kernel may start before the one in front has ended.
  bool early = false;
  /// Blocks are also filled and read by copies (from and to the host, on the device) and memset.
  bool copies = false;
};

/// What all threads of a canary did.
struct CanaryTally {
  std::atomic<std::uint64_t> blocks{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> trims{0};
  std::atomic<std::uint64_t> looked_at{0};  ///< large blocks whose place was looked at ...
  std::atomic<std::uint64_t> in_views{0};   ///< ... and which lay in a view
};

/// One thread's part of the churn.
class Canary {
 public:
  Canary(CachingAllocator& allocator, MismatchCounter& mismatches, CanaryTally& tally,
         const CanaryOptions& options, std::uint64_t seed, int number);
  ~Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  void run(std::chrono::milliseconds duration);

 private:
  static constexpr std::size_t kStreams = 2;

  struct Block {
    void* memory = nullptr;
    Bytes size{};
    std::uint32_t value = 0;
    std::size_t stream = 0;
  };

  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  Bytes random_size();
  std::uint32_t next_value();
  void step();
  void take_one();
  void free_one();
  void free(void* memory);
  void fill_block(Block& block);
  void verify(const Block& block, const Stream& stream);
  void verify_by_copy(const Block& block, const Stream& stream);
  void* take(Bytes size, const Stream& stream);

  CachingAllocator& allocator_;
  MismatchCounter& mismatches_;
  CanaryTally& tally_;
  CanaryOptions options_;
  Launch how_;
  std::mt19937_64 random_;
  std::uint32_t last_value_;
  double least_bits_ = 16;  ///< of sizes, for a while
  Stream streams_[kStreams];
  void* host_[kStreams] = {};  ///< memory of the host, used in the order of its stream
  std::vector<Block> blocks_;
};

/// A persistent kernel on a stream of its own that writes and reads one block from its construction
/// to finish(), which returns how many rounds it made.
class Patrol {
 public:
  Patrol(CachingAllocator& allocator, MismatchCounter& mismatches, std::chrono::milliseconds most);
  ~Patrol();
  Patrol(const Patrol&) = delete;
  Patrol& operator=(const Patrol&) = delete;

  bool running() const { return stream_.busy(); }
  unsigned long long finish();

 private:
  CachingAllocator& allocator_;
  Stream stream_;
  void* memory_ = nullptr;
  volatile int* end_ = nullptr;
  unsigned long long* rounds_ = nullptr;  // memory of the host
};

}  // namespace bursar::test
