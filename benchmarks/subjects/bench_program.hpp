// SPDX-License-Identifier: Apache-2.0
// BenchProgram: what the benchmark programs have in common: options, errors, Google Benchmark's
// run.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_machine.hpp"

namespace bursar {
inline namespace v0 {

struct BenchOptions {
  std::string device = "auto";
  bool smoke = false;  ///< each benchmark once and briefly
};

class BenchProgram {
 public:
  BenchProgram(std::string name, std::string description);

  /// For options of the program's own.
  CLI::App& app() noexcept { return app_; }
  const BenchOptions& options() const noexcept { return options_; }
  /// Flags of Google Benchmark that hold unless the command line says otherwise or `--smoke`.
  void default_flags(std::vector<std::string> flags) { flags_ = std::move(flags); }

  /// Parses, calls `define` to register benchmarks and runs them, unless it returns false. Returns
  /// the exit code: 0 done, 1 something failed, 2 the command line is unusable.
  int run(int argc, char** argv, const std::function<bool(BenchMachine&)>& define);

 private:
  bool start_google_benchmark(BenchMachine& machine);

  CLI::App app_;
  BenchOptions options_;
  std::vector<std::string> flags_;
  std::vector<std::string> words_;  ///< Google Benchmark's arguments, which it keeps pointers to
};

}  // namespace v0
}  // namespace bursar
