// SPDX-License-Identifier: Apache-2.0
// From a driver's code to an error that says what to do.
#pragma once

#include <bursar/core/error.hpp>
#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

/// The error for `code` of `call`. Out-of-memory of a create is device_oom, of a reserve
/// va_exhausted; sticky codes are device_lost; what is not known stays driver_fault and is never
/// retried. Precondition: code is not success.
BURSAR_EXPORT error driver_error(DriverCode code, DriverCall call, DeviceId device,
                                 Bytes asked = {}, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) noexcept;

}  // namespace v0
}  // namespace bursar
