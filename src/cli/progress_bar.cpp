// SPDX-License-Identifier: Apache-2.0
// Ten times a second is enough for eyes.
#include "progress_bar.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace bursar {
inline namespace v0 {

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (on_terminal_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
  constexpr std::uint64_t kWidth = 32;
  const auto now = std::chrono::steady_clock::now();
  if (!on_terminal_ || total == 0 || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  fmt::print(stderr, "\r\033[K[{:<{}}] {:>3} %  {}", std::string(done * kWidth / total, '#'),
             kWidth, done * 100 / total, title_);
  std::fflush(stderr);
}

}  // namespace v0
}  // namespace bursar
