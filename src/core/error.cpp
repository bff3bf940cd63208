// SPDX-License-Identifier: Apache-2.0
// Errors as text for people.
#include <iterator>

#include <fmt/format.h>

#include <bursar/core/error.hpp>

namespace bursar {
inline namespace v0 {
namespace {

void append_size(std::string& text, const char* name, Bytes size) {
  constexpr std::uint64_t kMiB = 1u << 20;
  const auto out = std::back_inserter(text);
  if (size.count < kMiB) {
    fmt::format_to(out, ", {} {} B", name, size.count);
  } else {
    const auto mib = static_cast<double>(size.count) / static_cast<double>(kMiB);
    fmt::format_to(out, ", {} {:.1f} MiB", name, mib);
  }
}

}  // namespace

const char* to_string(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::over_budget: return "over_budget";
    case ErrorKind::device_oom: return "device_oom";
    case ErrorKind::va_exhausted: return "va_exhausted";
    case ErrorKind::invalid_argument: return "invalid_argument";
    case ErrorKind::not_supported: return "not_supported";
    case ErrorKind::driver_fault: return "driver_fault";
    case ErrorKind::device_lost: return "device_lost";
    case ErrorKind::peer_lost: return "peer_lost";
    case ErrorKind::not_shareable: return "not_shareable";
    case ErrorKind::forked: return "forked";
    case ErrorKind::canceled: return "canceled";
  }
  return "unknown";
}

std::string to_string(const error& e) {
  std::string text = fmt::format("{}: {} (device {}", to_string(e.kind), e.message, e.device.value);
  if (e.asked > Bytes{0}) append_size(text, "asked", e.asked);
  // Out of memory with nothing free is worth saying; elsewhere 0 means that nobody looked.
  if (e.free > Bytes{0} || e.retryable()) append_size(text, "free", e.free);
  if (e.limit > Bytes{0}) append_size(text, "limit", e.limit);
  if (e.driver_code != 0)
    fmt::format_to(std::back_inserter(text), ", driver code {}", e.driver_code);
  fmt::format_to(std::back_inserter(text), ") [{}:{}]", e.file, e.line);
  return text;
}

Error::Error(const error& e) : std::runtime_error(to_string(e)), error_(e) {}

}  // namespace v0
}  // namespace bursar
