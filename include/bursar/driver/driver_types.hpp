// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the driver seam: codes, handles, capabilities.
//
// Handles are opaque here. Only a `Driver` knows that an extent is a
// CUmemGenericAllocationHandle or a stream a CUstream; nothing above the seam includes CUDA.
//
// Equality is declared beside each ordering for the sake of nvcc, as in core/ids.hpp.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

/// The driver's own result codes: the numbers of CUresult, so that nothing is lost in translation.
/// A code that is not named here keeps its number.
enum class DriverCode : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  ecc_uncorrectable = 214,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_failed = 719,
  not_permitted = 800,
  not_supported = 801,
  system_not_ready = 802,
  capture_unsupported = 900,
  capture_invalidated = 901,
  unknown = 999,
};

/// True for codes after which nothing works any more in this process (sticky errors).
constexpr bool is_sticky(DriverCode code) {
  const int n = static_cast<int>(code);
  return code == DriverCode::ecc_uncorrectable || (n >= 700 && n < 720) ||
         code == DriverCode::deinitialized;
}

/// One cuMemCreate handle. 0 is none.
struct ExtentHandle {
  std::uint64_t value = 0;
  explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(ExtentHandle, ExtentHandle) = default;
  friend constexpr bool operator==(ExtentHandle, ExtentHandle) = default;
};

/// A stream as the caller knows it (CUstream / cudaStream_t). Null is the legacy default stream,
/// 1 the legacy and 2 the per-thread default stream, as in CUDA.
struct StreamHandle {
  void* value = nullptr;
  friend constexpr auto operator<=>(StreamHandle, StreamHandle) = default;
  friend constexpr bool operator==(StreamHandle, StreamHandle) = default;
};

/// An event of the driver. Null is none.
struct EventHandle {
  void* value = nullptr;
  explicit operator bool() const { return value != nullptr; }
  friend constexpr auto operator<=>(EventHandle, EventHandle) = default;
  friend constexpr bool operator==(EventHandle, EventHandle) = default;
};

/// What a device can do, as probed with the very properties that will be used.
enum class CapabilityLevel : std::uint8_t {
  full,        ///< virtual memory management, one extent at several addresses at once
  no_aliases,  ///< virtual memory management, one mapping an extent
  no_vmm,      ///< neither: memory comes from cudaMalloc (Jetson, vGPU, WSL2)
};

/// "full", "no_aliases", "no_vmm".
constexpr const char* to_string(CapabilityLevel level) {
  switch (level) {
    case CapabilityLevel::full: return "full";
    case CapabilityLevel::no_aliases: return "no_aliases";
    case CapabilityLevel::no_vmm: return "no_vmm";
  }
  return "?";
}

struct DeviceInfo {
  DeviceId id{};
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  Bytes total{};        ///< the device's memory
  Bytes granularity{};  ///< the page: the smallest extent, and what all sizes are multiples of
  CapabilityLevel capability = CapabilityLevel::full;
  bool shareable_fd = false;     ///< extents can be exported as POSIX file descriptors
  bool gpu_direct_rdma = false;  ///< extents are created RDMA-capable
  bool unmap_waits = false;      ///< cuMemUnmap was seen to wait for running kernels
};

struct MemoryInfo {
  Bytes free{};
  Bytes total{};
};

/// Properties of one extent.
struct ExtentProperties {
  bool shareable = false;  ///< exportable as a file descriptor
};

/// Which driver function; the key of meters, price tables and fault injection.
enum class DriverCall : std::uint8_t {
  create,  ///< cuMemCreate, or cudaMalloc at level no_vmm
  map,
  set_access,
  unmap,
  release,    ///< cuMemRelease, or cudaFree at level no_vmm
  reserve,    ///< cuMemAddressReserve
  unreserve,  ///< cuMemAddressFree
  event_create,
  event_record,
  event_query,
  event_destroy,
  stream_wait,  ///< cuStreamWaitEvent
  stream_id,
  stream_capturing,
  memory_info,
  memset,
  export_handle,
  import_handle,
  trim_pools,
  read,  ///< a small copy to the host, waited for
};
inline constexpr std::size_t kDriverCallCount = 20;

/// "create", "map", ...: the enumerator's name.
constexpr const char* to_string(DriverCall call) {
  constexpr const char* names[kDriverCallCount] = {"create",        "map",
                                                   "set_access",    "unmap",
                                                   "release",       "reserve",
                                                   "unreserve",     "event_create",
                                                   "event_record",  "event_query",
                                                   "event_destroy", "stream_wait",
                                                   "stream_id",     "stream_capturing",
                                                   "memory_info",   "memset",
                                                   "export_handle", "import_handle",
                                                   "trim_pools",    "read"};
  return names[static_cast<std::size_t>(call)];
}

}  // namespace v0
}  // namespace bursar
