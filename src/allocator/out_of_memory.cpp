// SPDX-License-Identifier: Apache-2.0
// The text of an out-of-memory error: written into the exception itself, so that it needs no heap.
#include <bursar/allocator/out_of_memory.hpp>

#include <fmt/format.h>

namespace bursar {
inline namespace v0 {

namespace {
double mib(Bytes b) { return static_cast<double>(b.count) / (1 << 20); }
}  // namespace

OutOfMemory::OutOfMemory(const OomReport& report) noexcept : report_(report) {
  const error& cause = report.cause;
  Bytes reclaimed{};
  for (const Bytes bytes : report.reclaimed) reclaimed += bytes;
  try {
    const auto end = fmt::format_to_n(
        text_.data(), text_.size() - 1,
        "{}: {} ({:.1f} MiB asked on device {}, {:.1f} MiB free, limit {:.1f} MiB). "
        "Held: {:.1f} MiB reserved, {:.1f} live, {:.1f} idle (largest {:.1f}), {:.1f} pending; "
        "domain {}: {:.1f} reserved, {:.1f} live. Reclaimed {:.1f} MiB in {:.1f} ms of trying.",
        to_string(cause.kind), cause.message, mib(cause.asked), cause.device.value, mib(cause.free),
        mib(cause.limit), mib(report.held.reserved), mib(report.held.live), mib(report.held.idle),
        mib(report.held.largest_idle), mib(report.held.pending), report.domain.value,
        mib(report.domain_held.reserved), mib(report.domain_held.live), mib(reclaimed),
        static_cast<double>(report.elapsed.ns) / 1e6);
    *end.out = '\0';
  } catch (...) {
    text_[0] = '\0';
  }
}

const char* OutOfMemory::what() const noexcept {
  return text_[0] != '\0' ? text_.data() : report_.cause.message;
}

}  // namespace v0
}  // namespace bursar
