// SPDX-License-Identifier: Apache-2.0
// A program that runs ahead of the GPU: behind a kernel of 200 ms, blocks that only moved or
// stitched memory can serve are had while it runs, and both the old and the new bytes are right.
// Latencies are reported beside their bound. What is asserted is that no allocation takes half as
// long as the kernel, while an event says that it still runs.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"
#include "support/scatter.hpp"

using namespace bursar;
using namespace bursar::test;
using namespace bursar::literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kKernels = 5;  // for each size and way
constexpr auto kKernelTime = std::chrono::milliseconds(200);
constexpr auto kTooLong = std::chrono::milliseconds(100);
constexpr std::uint64_t kLeastMoves = 50;    // behind each kernel
constexpr std::uint64_t kLeastInAll = 1000;  // behind all

/// The allocations behind the kernels of one size and way.
struct Sample {
  std::vector<double> took_us;
  std::vector<double> bound_us;
  std::uint64_t extents = 0;
  std::uint64_t fewest_extents = ~std::uint64_t{0};  ///< behind one kernel
  std::uint64_t too_long = 0;
  std::uint64_t created = 0;
  std::uint64_t reserved_more = 0;
};

/// One long kernel and what happens behind it, on an allocator of its own.
class Round {
 public:
  Round(const Scatter& scatter, unsigned blocks)
      : scatter_(scatter), blocks_(blocks), allocator_(gpu_driver(), scatter.options) {
    // A second stream, so that fences matter.
    (void)allocator_.allocate(512, {.stream = other_.handle()});
    for (unsigned i = 0; i < blocks_ * scatter_.holes; ++i) {
      holes_.push_back(get(scatter_.hole));
      separators_.push_back(get(scatter_.separator));
    }
    stream_.synchronize();
  }

  void run(Sample& sample) {
    const MeterReading before = gpu_driver()->meter().read();
    launch_spin(std::chrono::nanoseconds(kKernelTime).count(), stream_.raw());
    kernel_end_.record(stream_);
    for (const Filled& hole : holes_) {  // read after the long kernel, freed before it ends
      mismatches_.expect(hole.memory, hole.size, hole.value, stream_);
      allocator_.deallocate(hole.memory);
    }
    std::uint64_t extents = 0;
    for (unsigned i = 0; i < blocks_ && kernel_end_.pending(); ++i) extents += take_one(sample);
    const MeterReading after = gpu_driver()->meter().read();
    sample.extents += extents;
    sample.fewest_extents = std::min(sample.fewest_extents, extents);
    sample.created += after.count(DriverCall::create) - before.count(DriverCall::create);
    sample.reserved_more += (after.reserved - before.reserved).count;
  }

  /// Verifies all that is live. How many words are wrong, of the old data too.
  unsigned long long verify() {
    for (const std::vector<Filled>* filled : {&separators_, &taken_}) {
      for (const Filled& block : *filled) {
        mismatches_.expect(block.memory, block.size, block.value, stream_);
      }
    }
    const unsigned long long wrong = mismatches_.total();
    CHECK(allocator_.validate().ok());
    return wrong;
  }

 private:
  struct Filled {
    void* memory = nullptr;
    Bytes size{};
    std::uint32_t value = 0;
  };

  Filled get(Bytes size) {
    void* memory = allocator_.allocate(size.count, {.stream = stream_.handle()});
    fill(memory, size, ++value_, stream_);
    return {memory, size, value_};
  }

  /// Returns how many extents moved. An allocation during which the kernel ended is no sample,
  /// unless it took too long.
  std::uint64_t take_one(Sample& sample) {
    CallMeter& meter = gpu_driver()->meter();
    const std::uint64_t mapped = meter.read().count(DriverCall::map);
    const Clock::time_point begin = Clock::now();
    void* memory = allocator_.allocate(scatter_.block.count, {.stream = stream_.handle()});
    const Clock::duration took = Clock::now() - begin;
    const bool behind = kernel_end_.pending();
    const std::uint64_t extents = meter.read().count(DriverCall::map) - mapped;
    fill(memory, scatter_.block, ++value_, stream_);
    taken_.push_back({memory, scatter_.block, value_});
    if (took >= kTooLong) ++sample.too_long;
    if (!behind) return 0;
    sample.took_us.push_back(std::chrono::duration<double, std::micro>(took).count());
    sample.bound_us.push_back(200.0 + 60.0 * static_cast<double>(extents));
    return extents;
  }

  Scatter scatter_;
  unsigned blocks_;
  Stream stream_;
  Stream other_;
  Marker kernel_end_;
  MismatchCounter mismatches_;
  CachingAllocator allocator_;
  std::vector<Filled> holes_;
  std::vector<Filled> separators_;
  std::vector<Filled> taken_;
  std::uint32_t value_ = 0;
};

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank),
                   values.end());
  return values[rank];
}

void show(const Scatter& scatter, Way way, const Sample& sample, unsigned long long wrong) {
  std::vector<double> shares;  // of its own bound, each allocation
  for (std::size_t i = 0; i < sample.took_us.size(); ++i) {
    shares.push_back(sample.took_us[i] / sample.bound_us[i]);
  }
  char line[512];
  std::snprintf(line, sizeof line,
                "{\"running_ahead\":\"%s\",\"mib\":%llu,\"kernels\":%u,\"allocations\":%zu,"
                "\"extents_moved\":%llu,\"extents_each\":%u,\"p50_us\":%.1f,\"p99_us\":%.1f,"
                "\"max_us\":%.1f,\"bound_us\":%.1f,\"p99_of_bound\":%.3f,\"created\":%llu,"
                "\"wrong_words\":%llu}",
                to_string(way), static_cast<unsigned long long>(scatter.block.count >> 20),
                kKernels, sample.took_us.size(), static_cast<unsigned long long>(sample.extents),
                scatter.extents, percentile(sample.took_us, 0.5), percentile(sample.took_us, 0.99),
                percentile(sample.took_us, 1), 200.0 + 60.0 * scatter.extents,
                percentile(shares, 0.99), static_cast<unsigned long long>(sample.created), wrong);
  report("ahead", line);
}

/// Large blocks are fewer, so that they all fit behind one kernel.
unsigned blocks_behind(Bytes block) {
  if (block < 16_MiB) return 100;
  return block < 256_MiB ? 50 : 16;
}

}  // namespace

TEST_CASE("behind a long kernel memory moves at once, and old and new bytes are right",
          "[allocator][cuda][gpu][ahead]") {
  if (!has_aliases()) SKIP_TEST("this device maps an extent at one address only");
  std::uint64_t moves = 0;
  for (const Way way : {Way::move, Way::stitch}) {
    for (const Bytes block : {2_MiB, 16_MiB, 64_MiB, 256_MiB}) {
      const Scatter scatter = test::scatter(way, block);
      Sample sample;
      unsigned long long wrong = 0;
      for (unsigned i = 0; i < kKernels; ++i) {
        Round round(scatter, blocks_behind(block));
        round.run(sample);
        wrong += round.verify();
      }
      show(scatter, way, sample, wrong);
      INFO(to_string(way) << " for blocks of " << (block.count >> 20) << " MiB");
      CHECK(wrong == 0);
      CHECK(sample.too_long == 0);
      CHECK(sample.created == 0);
      CHECK(sample.reserved_more == 0);
      CHECK(sample.fewest_extents >= kLeastMoves);
      moves += sample.extents;
    }
  }
  CHECK(moves >= kLeastInAll);
}
