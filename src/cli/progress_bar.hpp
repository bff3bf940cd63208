// SPDX-License-Identifier: Apache-2.0
// ProgressBar: how far a long command is, for whoever watches a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace bursar {
inline namespace v0 {

/// Draws on stderr, on one line that it takes away again; does nothing where stderr is no terminal.
/// One thread at a time.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::uint64_t done, std::uint64_t total);

 private:
  std::string title_;
  bool on_terminal_;
  std::chrono::steady_clock::time_point next_{};  ///< not drawn again before
};

}  // namespace v0
}  // namespace bursar
