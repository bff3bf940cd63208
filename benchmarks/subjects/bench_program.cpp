// SPDX-License-Identifier: Apache-2.0
// Options that CLI11 does not know go on to Google Benchmark, which refuses what it does not know.
#include "bench_program.hpp"

#include <cstdio>
#include <exception>
#include <semaphore>
#include <thread>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bursar/core/check.hpp>
#include <bursar/core/error.hpp>

namespace bursar {
inline namespace v0 {
namespace {

/// A second thread that sleeps. Programs that use a GPU have several, and with one alone the C
/// library's locks leave their atomic operations out, which would flatter whoever locks.
class Sleeper {
 public:
  ~Sleeper() { wake_.release(); }

 private:
  std::binary_semaphore wake_{0};
  std::jthread thread_{[this] { wake_.acquire(); }};
};

}  // namespace

BenchProgram::BenchProgram(std::string name, std::string description)
    : app_(std::move(description), std::move(name)) {
  app_.add_option("--device", options_.device, "sim, cuda, or auto: cuda where there is a GPU")
      ->check(CLI::IsMember({"sim", "cuda", "auto"}))
      ->capture_default_str();
  app_.add_flag("--smoke", options_.smoke, "each benchmark once and briefly: does it work at all?");
  app_.footer(
      "--benchmark_filter=REGEX, --benchmark_repetitions=N, --benchmark_out=FILE and all\n"
      "other flags of Google Benchmark work too. bursar takes its options from\n"
      "BURSAR_CONF.");
  app_.allow_extras();
}

bool BenchProgram::start_google_benchmark(BenchMachine& machine) {
  words_ = {app_.get_name()};
  if (!options_.smoke) words_.insert(words_.end(), flags_.begin(), flags_.end());
  for (std::string& word : app_.remaining()) words_.push_back(std::move(word));
  std::vector<char*> pointers;
  for (std::string& word : words_) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return false;
  benchmark::AddCustomContext("device", machine.device().name());
  benchmark::AddCustomContext("allocators",
                              fmt::format("{}", fmt::join(machine.allocators(), ", ")));
  benchmark::AddCustomContext("check_level", std::to_string(kCheckLevel));
  return true;
}

int BenchProgram::run(int argc, char** argv, const std::function<bool(BenchMachine&)>& define) {
  try {
    app_.parse(argc, argv);
    const Sleeper sleeper;
    BenchMachine machine(options_.device);
    if (!define(machine)) return 0;
    if (!start_google_benchmark(machine)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
  } catch (const CLI::ParseError& e) {
    return app_.exit(e) == 0 ? 0 : 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", app_.get_name(), e.what());
    return 1;
  }
  return 0;
}

}  // namespace v0
}  // namespace bursar
