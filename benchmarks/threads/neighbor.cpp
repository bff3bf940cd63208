// SPDX-License-Identifier: Apache-2.0
// Each pair is timed by itself, so a figure includes reading the clock.
#include "neighbor.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "subjects/bursar_rig.hpp"

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::size_t kNeighborBytes = 4096;
constexpr std::size_t kGrowthBytes = 8 << 20;

/// `nanoseconds` is sorted and not empty.
double quantile(const std::vector<std::int64_t>& nanoseconds, double share) {
  const auto last = static_cast<double>(nanoseconds.size() - 1);
  return static_cast<double>(nanoseconds[static_cast<std::size_t>(share * last)]);
}

}  // namespace

NeighborResult measure_neighbor(BenchMachine& machine, std::chrono::milliseconds slow, int calls) {
  using Clock = std::chrono::steady_clock;
  BursarRig rig(machine, 2);
  BursarRig::OnStream mine = rig.subject(0);
  mine.deallocate(mine.allocate(kNeighborBytes));

  const auto creations = [&] { return machine.driver()->meter().read().count(DriverCall::create); };
  machine.simulated()->delay(DriverCall::create, milliseconds(slow.count()));
  std::atomic<bool> inside = false;
  std::atomic<bool> done = false;
  std::thread grower([&] {
    BursarRig::OnStream subject = rig.subject(1);
    std::vector<void*> blocks;
    const std::uint64_t until = creations() + static_cast<std::uint64_t>(calls);
    inside = true;
    while (creations() < until) blocks.push_back(subject.allocate(kGrowthBytes));
    done = true;
    for (void* block : blocks) subject.deallocate(block);
  });
  while (!inside) std::this_thread::yield();
  std::vector<std::int64_t> nanoseconds;
  while (!done) {
    const Clock::time_point begin = Clock::now();
    mine.deallocate(mine.allocate(kNeighborBytes));
    nanoseconds.push_back(std::chrono::nanoseconds(Clock::now() - begin).count());
  }
  grower.join();
  machine.simulated()->delay(DriverCall::create, Duration{});

  std::sort(nanoseconds.begin(), nanoseconds.end());
  if (nanoseconds.empty()) throw std::runtime_error("neighbor: not one pair beside slow calls");
  return {quantile(nanoseconds, 0.5), quantile(nanoseconds, 0.99), quantile(nanoseconds, 1),
          nanoseconds.size()};
}

}  // namespace v0
}  // namespace bursar
