// SPDX-License-Identifier: Apache-2.0
// threads: pairs/s of several threads together, each on a stream of its own or all on one.
//
// Names are WORKLOAD/THREADS/ALLOCATOR. tcmalloc knows no streams: it stands in both workloads, to
// show how far this machine lets anything scale.
#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "neighbor.hpp"
#include "subjects/bench_program.hpp"
#include "subjects/keep.hpp"
#include "subjects/rigs.hpp"
#include "thread_team.hpp"

namespace bursar {
inline namespace v0 {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::array<int, 5> kTeams{1, 2, 4, 8, 16};
constexpr Seconds kSmokeSeconds{0.002};
constexpr std::chrono::milliseconds kSlowCall{100};

/// 64 sizes from 4 KiB on, one pair of each.
template <class Subject>
std::uint64_t sixty_four_pairs(Subject& subject) {
  constexpr std::size_t kSizes = 64;
  for (std::size_t i = 0; i < kSizes; ++i) {
    void* block = subject.allocate(4096 + 512 * i);
    keep(block);
    subject.deallocate(block);
  }
  return kSizes;
}

void run_threads(benchmark::State& state, BenchMachine& machine, const std::string& allocator,
                 int threads, bool own_stream, Seconds at_least) {
  on_rig(machine, allocator, own_stream ? threads : 1, [&](auto& rig) {
    for (auto _ : state) {
      const TeamResult team = run_team(threads, at_least, [&](int thread) {
        return [subject = rig.subject(own_stream ? thread : 0)]() mutable {
          return sixty_four_pairs(subject);
        };
      });
      state.SetIterationTime(team.seconds);
      state.counters["pairs_per_second"] = static_cast<double>(team.pairs) / team.seconds;
      state.counters["pinned"] = team.pinned ? 1 : 0;
    }
  });
}

void add_threads(BenchMachine& machine, const std::string& allocator, bool own_stream,
                 Seconds at_least) {
  for (const int threads : kTeams) {
    const std::string name = fmt::format(
        "{}/{}/{}", own_stream ? "threads_own_stream" : "threads_one_stream", threads, allocator);
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=, &machine](benchmark::State& state) {
                                   run_threads(state, machine, allocator, threads, own_stream,
                                               at_least);
                                 })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

void add_neighbor(BenchMachine& machine, bool smoke) {
  const std::string name = fmt::format("neighbor/{}/bursar", kSlowCall.count());
  benchmark::RegisterBenchmark(name.c_str(),
                               [=, &machine](benchmark::State& state) {
                                 for (auto _ : state) {
                                   const NeighborResult result =
                                       measure_neighbor(machine, kSlowCall, smoke ? 1 : 5);
                                   state.SetIterationTime(result.p99_ns / 1e9);
                                   state.counters["median_ns"] = result.median_ns;
                                   state.counters["p99_ns"] = result.p99_ns;
                                   state.counters["longest_ns"] = result.longest_ns;
                                   state.counters["pairs"] = static_cast<double>(result.pairs);
                                 }
                               })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kNanosecond);
}

int run(int argc, char** argv) {
  double seconds = 1;
  BenchProgram program("threads", "Measures allocate + deallocate pairs/s of several threads.");
  program.app()
      .add_option("--seconds", seconds, "how long each thread works, at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.default_flags(
      {"--benchmark_repetitions=3", "--benchmark_enable_random_interleaving=true"});
  return program.run(argc, argv, [&](BenchMachine& machine) {
    const bool smoke = program.options().smoke;
    const Seconds at_least = smoke ? kSmokeSeconds : Seconds(seconds);
    for (const bool own_stream : {true, false}) {
      for (const std::string& allocator : machine.allocators()) {
        add_threads(machine, allocator, own_stream, at_least);
      }
    }
    if (machine.simulated() != nullptr) add_neighbor(machine, smoke);
    return true;
  });
}

}  // namespace
}  // namespace v0
}  // namespace bursar

int main(int argc, char** argv) { return bursar::run(argc, argv); }
