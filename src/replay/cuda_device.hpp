// SPDX-License-Identifier: Apache-2.0
// The replay on a GPU, with the two allocators that come with CUDA and PyTorch's beside ours.
#pragma once

#include <memory>
#include <optional>

#include <bursar/driver/driver.hpp>

#include "replay_device.hpp"

namespace bursar {
inline namespace v0 {

/// Device 0 of `driver`, which open_cuda_driver() gave. `limit` bounds what `bursar` may hold; the
/// others have no such limit. Throws Error(not_supported) in a build without the CUDA Toolkit.
std::unique_ptr<ReplayDevice> make_cuda_device(std::shared_ptr<Driver> driver,
                                               std::optional<Bytes> limit);

}  // namespace v0
}  // namespace bursar
