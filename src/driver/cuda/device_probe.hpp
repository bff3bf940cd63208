// SPDX-License-Identifier: Apache-2.0
// The probe: finds out by trying what a device can do.
//
// Attributes promise more than containers, vGPUs and WSL2 keep, so each property an extent will ask
// for is tried on one page: created, mapped, made accessible, exported, written through one address
// and read through another.
#pragma once

#include <cuda.h>

#include <cstdint>

#include <bursar/driver/driver_types.hpp>

#include "entry_points.hpp"
#include "primary_contexts.hpp"

namespace bursar {
inline namespace v0 {

/// What the driver is asked for when an extent of the device is created; the probe's own tries use
/// the same function. RDMA-capable wherever that works, a file descriptor only when `wanted`.
CUmemAllocationProp allocation_properties(const DeviceInfo& info, ExtentProperties wanted) noexcept;

/// The type of handle that extents are exported as, and a descriptor as an import takes it.
inline constexpr auto kFileDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
inline void* to_os_handle(int fd) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver wants it so
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
}

/// Fills `info`, whose `id` is set. Uses the device's primary context and waits only for work of
/// its own. A failure means that nothing could be learned and leaves level no_vmm; a lacking
/// capability is no failure.
CUresult probe_device(const EntryPoints& api, PrimaryContexts& contexts, CUdevice device,
                      DeviceInfo& info);

}  // namespace v0
}  // namespace bursar
