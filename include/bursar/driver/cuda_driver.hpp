// SPDX-License-Identifier: Apache-2.0
// The real driver, loaded at run time: a program linked to Bursar starts without a GPU too.
#pragma once

#include <memory>

#include <bursar/core/result.hpp>
#include <bursar/driver/driver.hpp>

namespace bursar {
inline namespace v0 {

/// Loads libcuda.so.1, resolves its entry points through cuGetProcAddress and probes each device
/// once with the very properties that will be used. `not_supported` says clearly what is missing:
/// no library, a driver older than 12.4, no device, or a build without the CUDA Toolkit.
/// Thread-safe; may take seconds (contexts are created).
BURSAR_EXPORT result<std::shared_ptr<Driver>> open_cuda_driver();

}  // namespace v0
}  // namespace bursar
