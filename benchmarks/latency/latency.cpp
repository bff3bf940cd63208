// SPDX-License-Identifier: Apache-2.0
// latency: what a cached allocate + deallocate pair costs one thread, beside other allocators.
//
// Names are WORKLOAD/ARGUMENT/ALLOCATOR. bursar's pingpong exists three times: with the stream
// resolved once, with its raw handle in both calls (_raw), and in allocate alone (_raw_home).
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "subjects/bench_program.hpp"
#include "subjects/keep.hpp"
#include "subjects/rigs.hpp"
#include "workloads.hpp"

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::array<std::size_t, 7> kPingpongBytes{512,     4 << 10,  64 << 10, 1 << 20,
                                                    8 << 20, 64 << 20, 1 << 30};
constexpr std::size_t kHostBytes = 4 << 10;  ///< host memory is compared at this size alone
constexpr std::array<ChurnPlan, 4> kChurns{
    ChurnPlan{100, 16 << 20}, {1'000, 16 << 20}, {5'000, 2 << 20}, {50'000, 256 << 10}};
constexpr int kWarmUpPairs = 200;
constexpr double kSecondsPerRepetition = 0.1;
constexpr benchmark::IterationCount kSmokeIterations = 100;

/// Runs `loop` and says how many driver calls a pair it made. Returns those for memory in all.
template <class Loop>
std::uint64_t metered(benchmark::State& state, CallMeter* meter, Loop&& loop) {
  if (meter == nullptr) {
    loop();
    return 0;
  }
  const MeterReading before = meter->read();
  loop();
  const MeterReading after = meter->read();
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kDriverCallCount; ++i) all += after.calls[i] - before.calls[i];
  state.counters["driver_calls"] =
      benchmark::Counter(static_cast<double>(all), benchmark::Counter::kAvgIterations);
  std::uint64_t for_memory = 0;
  for (const DriverCall call : {DriverCall::create, DriverCall::release, DriverCall::map,
                                DriverCall::set_access, DriverCall::unmap}) {
    for_memory += after.count(call) - before.count(call);
  }
  return for_memory;
}

/// Throws where pairs were no cache hits: then the figures would mean nothing.
template <class Subject>
void run_pingpong(benchmark::State& state, CallMeter* meter, Subject subject, std::size_t bytes) {
  for (int i = 0; i < kWarmUpPairs; ++i) subject.deallocate(subject.allocate(bytes));
  const std::uint64_t misses = metered(state, meter, [&] { pingpong(state, subject, bytes); });
  if (misses == 0) return;
  throw std::runtime_error(
      fmt::format("{} driver calls for memory in pairs of {} bytes that the cache should serve",
                  misses, bytes));
}

template <class Subject>
void run_churn(benchmark::State& state, CallMeter* meter, Subject subject, const ChurnPlan& plan) {
  Churn<Subject> churn(subject, plan);
  metered(state, meter, [&] {
    for (auto _ : state) churn.step();
  });
}

template <class Run>
void add(const std::string& name, bool smoke, Run run) {
  benchmark::internal::Benchmark* added = benchmark::RegisterBenchmark(name.c_str(), run);
  if (smoke) {
    added->Iterations(kSmokeIterations);
  } else {
    added->MinTime(kSecondsPerRepetition);
  }
}

void add_pingpongs(BenchMachine& machine, const std::string& allocator, bool smoke) {
  for (const std::size_t bytes : kPingpongBytes) {
    if (allocator == "tcmalloc" && bytes != kHostBytes) continue;
    add(fmt::format("pingpong/{}/{}", bytes, allocator), smoke,
        [=, &machine](benchmark::State& state) {
          on_rig(machine, allocator, 1,
                 [&](auto& rig) { run_pingpong(state, rig.meter(), rig.subject(0), bytes); });
        });
  }
}

void add_raw_pingpongs(BenchMachine& machine, bool smoke) {
  for (const std::size_t bytes : kPingpongBytes) {
    add(fmt::format("pingpong_raw/{}/bursar", bytes), smoke, [=, &machine](auto& state) {
      BursarRig rig(machine, 1);
      run_pingpong(state, rig.meter(), rig.raw(0), bytes);
    });
    add(fmt::format("pingpong_raw_home/{}/bursar", bytes), smoke, [=, &machine](auto& state) {
      BursarRig rig(machine, 1);
      run_pingpong(state, rig.meter(), rig.raw_home(0), bytes);
    });
  }
}

void add_churns(BenchMachine& machine, const std::string& allocator, bool smoke) {
  for (const ChurnPlan& plan : kChurns) {
    add(fmt::format("churn/{}/{}", plan.live, allocator), smoke,
        [=, &machine](benchmark::State& state) {
          on_rig(machine, allocator, 1,
                 [&](auto& rig) { run_churn(state, rig.meter(), rig.subject(0), plan); });
        });
  }
}

/// Pairs and nothing else, for a tool that counts instructions.
void make_pairs(BenchMachine& machine, const std::string& allocator, std::uint64_t pairs,
                std::size_t bytes) {
  on_rig(machine, allocator, 1, [&](auto& rig) {
    auto subject = rig.subject(0);
    for (std::uint64_t i = 0; i < pairs; ++i) {
      void* block = subject.allocate(bytes);
      keep(block);
      subject.deallocate(block);
    }
  });
}

struct PairsRequest {
  std::uint64_t pairs = 0;  ///< none: benchmarks
  std::size_t bytes = 4096;
  std::string allocator = "bursar";
};

void add_pairs_options(CLI::App& app, PairsRequest& request) {
  app.add_option("--pairs", request.pairs,
                 "time nothing: make so many pairs, for a tool that counts instructions");
  app.add_option("--bytes", request.bytes, "of each block of --pairs")->capture_default_str();
  app.add_option("--allocator", request.allocator, "of --pairs")
      ->check(CLI::IsMember({"bursar", "tcmalloc"}))
      ->capture_default_str();
}

int run(int argc, char** argv) {
  PairsRequest request;
  BenchProgram program("latency", "Times cached allocate + deallocate pairs on one thread.");
  add_pairs_options(program.app(), request);
  program.default_flags(
      {"--benchmark_repetitions=15", "--benchmark_enable_random_interleaving=true"});
  return program.run(argc, argv, [&](BenchMachine& machine) {
    if (request.pairs != 0) {
      make_pairs(machine, request.allocator, request.pairs, request.bytes);
      return false;
    }
    const bool smoke = program.options().smoke;
    for (const std::string& allocator : machine.allocators()) {
      add_pingpongs(machine, allocator, smoke);
      if (allocator != "tcmalloc") add_churns(machine, allocator, smoke);
    }
    add_raw_pingpongs(machine, smoke);
    return true;
  });
}

}  // namespace
}  // namespace v0
}  // namespace bursar

int main(int argc, char** argv) { return bursar::run(argc, argv); }
