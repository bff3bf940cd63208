// SPDX-License-Identifier: Apache-2.0
// The byte canary on a GPU: four threads with two streams each, in memory that is moved, stitched
// and trimmed, for BURSAR_STRESS_SECONDS each test case.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "canary.hpp"
#include "gpu_fixture.hpp"
#include "support/catch.hpp"
#include "support/stress_duration.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {

constexpr int kThreads = 4;

/// BURSAR_SEED where set, so that a failure can be repeated; else a new one.
std::uint64_t seed() {
  const char* given = std::getenv("BURSAR_SEED");
  return given != nullptr ? std::stoull(given) : std::random_device{}();
}

/// Nothing is grown that idle memory can serve, and views come and go.
AllocatorOptions restless() {
  AllocatorOptions options = gpu_options();
  options.guard = options.wide_guard = 0;
  options.map_price = 0;
  options.max_views = 64;
  options.small_limit = Bytes{1u << 20};
  return options;
}

std::string json(const std::string& name, std::uint64_t seed, std::chrono::milliseconds duration,
                 const CanaryTally& tally, std::uint64_t moved, unsigned long long mismatches,
                 unsigned long long rounds) {
  const auto field = [](const char* key, std::uint64_t value) {
    return std::string(",\"") + key + "\":" + std::to_string(value);
  };
  return "{\"canary\":\"" + name + "\"" + field("seed", seed) +
         field("seconds", static_cast<std::uint64_t>(duration.count()) / 1000) +
         field("streams", kThreads * 2) + field("blocks", tally.blocks) +
         field("bytes", tally.bytes) + field("trims", tally.trims) + field("extents_moved", moved) +
         field("looked_at", tally.looked_at) + field("in_views", tally.in_views) +
         field("reserved_peak", gpu_driver()->meter().read().reserved_peak.count) +
         field("persistent_rounds", rounds) + field("wrong_words", mismatches) + "}";
}

void run_canary(const std::string& name, const CanaryOptions& options, bool persistent) {
  const auto duration = stress_duration(std::chrono::seconds(4));
  const std::uint64_t chosen = seed();
  gpu_driver()->meter().reset_peak();
  CachingAllocator allocator(gpu_driver(), restless());
  MismatchCounter mismatches;
  CanaryTally tally;
  std::vector<std::unique_ptr<Canary>> canaries;
  for (int i = 0; i < kThreads; ++i) {
    canaries.push_back(std::make_unique<Canary>(allocator, mismatches, tally, options, chosen, i));
  }
  // What is loaded at its first use may wait for a kernel that runs: let it be loaded now.
  canaries.front()->run(std::chrono::milliseconds(200));
  std::optional<Patrol> patrol;
  if (persistent) patrol.emplace(allocator, mismatches, duration + std::chrono::seconds(60));
  std::vector<std::thread> threads;
  for (auto& canary : canaries) threads.emplace_back([&] { canary->run(duration); });
  for (std::thread& thread : threads) thread.join();
  if (patrol) CHECK(patrol->running());
  const unsigned long long rounds = patrol ? patrol->finish() : 0;

  const unsigned long long wrong = mismatches.total();
  const AllocatorStats stats = allocator.stats();
  report("canary", json(name, chosen, duration, tally, stats.extents_moved, wrong, rounds));
  CHECK(wrong == 0);
  CHECK(tally.refused == 0);
  if (gpu_options().passthrough) {  // under compute-sanitizer, so few and slow
    CHECK(tally.blocks > 50);
  } else {
    CHECK(tally.blocks > 1000);
    CHECK(stats.extents_moved > 0);
    CHECK(tally.in_views > 0);
  }
  CHECK((rounds > 0) == persistent);
  CHECK(stats.live_blocks == 0);
  CHECK(allocator.validate().ok());
}

}  // namespace

TEST_CASE("no byte is handed out while its former owner may still use it",
          "[allocator][cuda][gpu][canary][plain][memcheck]") {
  run_canary("plain", {}, false);
}

TEST_CASE("no byte is handed out too early to kernels that start early",
          "[allocator][cuda][gpu][canary][early]") {
  if (!launches_early()) SKIP_TEST("this device has no programmatic dependent launch");
  run_canary("early", {.early = true}, false);
}

TEST_CASE("no byte is handed out too early beside a persistent kernel",
          "[allocator][cuda][gpu][canary][persistent]") {
  if (gpu_driver()->device_info({}).unmap_waits) SKIP_TEST("unmaps wait for kernels here");
  run_canary("persistent", {}, true);
}

TEST_CASE("no byte is handed out too early to copies", "[allocator][cuda][gpu][canary][copies]") {
  run_canary("copies", {.copies = true}, false);
}

TEST_CASE(
    "no byte is handed out too early to early kernels, copies and a persistent kernel at once",
    "[allocator][cuda][gpu][canary][all]") {
  const bool able = launches_early() && !gpu_driver()->device_info({}).unmap_waits;
  if (!able) SKIP_TEST("this device cannot do all of it");
  run_canary("all", {.early = true, .copies = true}, true);
}
