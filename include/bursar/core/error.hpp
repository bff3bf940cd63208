// SPDX-License-Identifier: Apache-2.0
// error: what went wrong, with the driver's own code kept and a sentence that says what to do.
//
// Internals return `result<T>`; public functions that cannot return one throw.
// Only `over_budget` and `device_oom` may be answered by trying again, and nothing unknown is ever
// turned into one of them: a sticky device error that looks like out-of-memory would be retried
// for ever. An error owns no heap memory, so that reporting out-of-memory needs no memory.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

enum class ErrorKind : std::uint8_t {
  over_budget,       ///< the domain's limit does not allow it; retryable
  device_oom,        ///< the device has no memory left for it; retryable
  va_exhausted,      ///< no virtual addresses left
  invalid_argument,  ///< the caller's mistake
  not_supported,     ///< the device, driver or build cannot do it
  driver_fault,      ///< the driver refused for a reason of its own; see `driver_code`
  device_lost,       ///< a sticky error or a reset: nothing works on this device any more
  peer_lost,         ///< another process died in the middle of an exchange
  not_shareable,     ///< the block was not allocated `shareable`
  forked,            ///< called in a forked child, where the parent's CUDA state is void
  canceled,          ///< the caller asked to stop
};

/// The kind's name as documents, JSON and logs write it, e.g. "device_oom".
BURSAR_EXPORT const char* to_string(ErrorKind kind) noexcept;

struct error {
  ErrorKind kind = ErrorKind::driver_fault;
  int driver_code = 0;       ///< the driver's own code (CUresult), 0 where it had no part
  const char* message = "";  ///< static text: what happened and what to do
  DeviceId device{};
  Bytes asked{};  ///< bytes asked for, 0 where that says nothing
  Bytes free{};   ///< bytes free on the device or in the budget when known
  Bytes limit{};  ///< the limit that refused, 0 when none did
  // Where it was made; std::source_location is missing from clang 14.
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();

  /// True for the kinds that a later attempt may not meet again.
  constexpr bool retryable() const {
    return kind == ErrorKind::over_budget || kind == ErrorKind::device_oom;
  }
};

/// One line for people: kind, message, sizes, driver code, place.
BURSAR_EXPORT std::string to_string(const error& e);

/// What is thrown for every kind but the two retryable ones.
class BURSAR_EXPORT Error : public std::runtime_error {
 public:
  explicit Error(const error& e);
  const error& details() const noexcept { return error_; }

 private:
  error error_;
};

}  // namespace v0
}  // namespace bursar
