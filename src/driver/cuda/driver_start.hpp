// SPDX-License-Identifier: Apache-2.0
// start_driver: cuInit, and in plain words why it refused.
#pragma once

#include <cuda.h>

#include <vector>

#include <bursar/core/result.hpp>

#include "entry_points.hpp"

namespace bursar {
inline namespace v0 {

/// Initializes the driver and lists its devices in their order, at least one. Makes no context.
/// `not_supported`: no device, or a library that does not fit the kernel's driver; `forked`: the
/// parent used CUDA; `driver_fault`: anything else, with the driver's code.
result<std::vector<CUdevice>> start_driver(const EntryPoints& api);

}  // namespace v0
}  // namespace bursar
