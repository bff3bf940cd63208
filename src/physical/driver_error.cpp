// SPDX-License-Identifier: Apache-2.0
// The one table from driver codes to error kinds.
#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {

namespace {

struct Verdict {
  ErrorKind kind;
  const char* message;
};

Verdict judge(DriverCode code, DriverCall call) noexcept {
  if (is_sticky(code)) {
    return {ErrorKind::device_lost,
            "the device met a fatal error earlier: the process must be restarted"};
  }
  switch (code) {
    case DriverCode::out_of_memory:
      if (call == DriverCall::reserve) {
        return {ErrorKind::va_exhausted,
                "no virtual addresses left: use fewer domains or a smaller address_factor"};
      }
      return {ErrorKind::device_oom,
              "the device has no memory left: free or trim memory, or ask for less"};
    case DriverCode::not_initialized:
      return {ErrorKind::forked,
              "the driver is not initialized here: in a forked child, start a new program"};
    case DriverCode::not_supported:
      return {ErrorKind::not_supported, "the device or its driver does not support this"};
    case DriverCode::capture_unsupported:
    case DriverCode::capture_invalidated:
      return {ErrorKind::not_supported, "not possible while a stream is being captured"};
    case DriverCode::invalid_handle:
      return {ErrorKind::invalid_argument, "a stream that does not exist (any more) was named"};
    default: return {ErrorKind::driver_fault, "the driver refused an operation it should allow"};
  }
}

}  // namespace

error driver_error(DriverCode code, DriverCall call, DeviceId device, Bytes asked, const char* file,
                   int line) noexcept {
  const Verdict verdict = judge(code, call);
  error e;
  e.kind = verdict.kind;
  e.driver_code = static_cast<int>(code);
  e.message = verdict.message;
  e.device = device;
  e.asked = asked;
  e.file = file;
  e.line = line;
  return e;
}

}  // namespace v0
}  // namespace bursar
