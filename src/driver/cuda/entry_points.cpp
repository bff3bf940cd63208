// SPDX-License-Identifier: Apache-2.0
// Finds libcuda.so.1 and its functions at run time, so that nothing is linked against it.
#include "entry_points.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace bursar {
inline namespace v0 {
namespace {

constexpr int kOldestDriver = 12040;

/// A function's name as a template argument, so that the message that names it is static text.
template <std::size_t N>
struct Name {
  char text[N]{};
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval Name(const char (&name)[N]) { std::copy_n(name, N, text); }
};

constexpr std::string_view kMissingBegin = "libcuda.so.1 has no ";
constexpr std::string_view kMissingEnd = ": install a complete NVIDIA driver, 550 or newer";

template <Name kName>
consteval auto missing_text() {
  constexpr std::string_view name = kName.text;
  std::array<char, kMissingBegin.size() + name.size() + kMissingEnd.size() + 1> text{};
  auto* end = std::copy(kMissingBegin.begin(), kMissingBegin.end(), text.data());
  end = std::copy(name.begin(), name.end(), end);
  std::copy(kMissingEnd.begin(), kMissingEnd.end(), end);
  return text;
}

template <Name kName>
constexpr auto kMissingText = missing_text<kName>();

error unsupported(const char* message) {
  return error{.kind = ErrorKind::not_supported, .message = message};
}

/// Asks cuGetProcAddress for one function after the other and keeps the first failure.
class Resolver {
 public:
  explicit Resolver(PFN_cuGetProcAddress_v12000 get) : get_(get) {}

  template <Name kName, class Function>
  void find(Function& out) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    const CUresult code =
        get_(kName.text, &found, kOldestDriver, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
    if (code == CUDA_SUCCESS && found != nullptr) {
      out = reinterpret_cast<Function>(found);
    } else if (missing_ == nullptr) {
      missing_ = kMissingText<kName>.data();
    }
  }

  const char* missing() const { return missing_; }

 private:
  PFN_cuGetProcAddress_v12000 get_;
  const char* missing_ = nullptr;
};

void find_device_functions(Resolver& in, EntryPoints& out) {
  in.find<"cuInit">(out.init);
  in.find<"cuDeviceGetCount">(out.device_get_count);
  in.find<"cuDeviceGet">(out.device_get);
  in.find<"cuDeviceGetName">(out.device_get_name);
  in.find<"cuDeviceGetUuid">(out.device_get_uuid);
  in.find<"cuDeviceTotalMem">(out.device_total_mem);
  in.find<"cuDeviceGetAttribute">(out.device_get_attribute);
  in.find<"cuDevicePrimaryCtxRetain">(out.primary_ctx_retain);
  in.find<"cuDevicePrimaryCtxRelease">(out.primary_ctx_release);
  in.find<"cuCtxGetCurrent">(out.ctx_get_current);
  in.find<"cuCtxPushCurrent">(out.ctx_push_current);
  in.find<"cuCtxPopCurrent">(out.ctx_pop_current);
  in.find<"cuThreadExchangeStreamCaptureMode">(out.exchange_capture_mode);
}

void find_memory_functions(Resolver& in, EntryPoints& out) {
  in.find<"cuMemGetInfo">(out.mem_get_info);
  in.find<"cuMemGetAllocationGranularity">(out.mem_get_granularity);
  in.find<"cuMemCreate">(out.mem_create);
  in.find<"cuMemRelease">(out.mem_release);
  in.find<"cuMemExportToShareableHandle">(out.mem_export);
  in.find<"cuMemImportFromShareableHandle">(out.mem_import);
  in.find<"cuMemAddressReserve">(out.mem_address_reserve);
  in.find<"cuMemAddressFree">(out.mem_address_free);
  in.find<"cuMemMap">(out.mem_map);
  in.find<"cuMemSetAccess">(out.mem_set_access);
  in.find<"cuMemUnmap">(out.mem_unmap);
  in.find<"cuMemAlloc">(out.mem_alloc);
  in.find<"cuMemFree">(out.mem_free);
  in.find<"cuDeviceGetDefaultMemPool">(out.device_get_default_mem_pool);
  in.find<"cuDeviceGetMemPool">(out.device_get_mem_pool);
  in.find<"cuMemPoolTrimTo">(out.mem_pool_trim_to);
  in.find<"cuDeviceGraphMemTrim">(out.device_graph_mem_trim);
}

void find_stream_functions(Resolver& in, EntryPoints& out) {
  in.find<"cuStreamCreate">(out.stream_create);
  in.find<"cuStreamDestroy">(out.stream_destroy);
  in.find<"cuStreamSynchronize">(out.stream_synchronize);
  in.find<"cuStreamGetId">(out.stream_get_id);
  in.find<"cuStreamIsCapturing">(out.stream_is_capturing);
  in.find<"cuStreamWaitEvent">(out.stream_wait_event);
  in.find<"cuEventCreate">(out.event_create);
  in.find<"cuEventDestroy">(out.event_destroy);
  in.find<"cuEventRecord">(out.event_record);
  in.find<"cuEventQuery">(out.event_query);
  in.find<"cuMemsetD8Async">(out.memset_d8_async);
  in.find<"cuMemsetD32Async">(out.memset_d32_async);
  in.find<"cuMemcpyDtoHAsync">(out.memcpy_dtoh_async);
}

}  // namespace

result<EntryPoints> load_entry_points() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unsupported("libcuda.so.1 cannot be loaded: install the NVIDIA driver, 550 or newer");
  }
  // These two exist in every driver of the last years, so they are asked of the loader; a driver
  // too old for cuGetProcAddress_v2 must still be able to say how old it is.
  const auto version_of =
      reinterpret_cast<PFN_cuDriverGetVersion_v2020>(dlsym(library, "cuDriverGetVersion"));
  if (version_of == nullptr) return unsupported(kMissingText<"cuDriverGetVersion">.data());
  int version = 0;
  if (const CUresult code = version_of(&version); code != CUDA_SUCCESS) {
    return error{.kind = ErrorKind::driver_fault,
                 .driver_code = static_cast<int>(code),
                 .message = "libcuda.so.1 does not tell its version"};
  }
  if (version < kOldestDriver) {
    return unsupported("the NVIDIA driver is older than CUDA 12.4: install driver 550 or newer");
  }
  const auto get =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) return unsupported(kMissingText<"cuGetProcAddress_v2">.data());

  Resolver resolver(get);
  EntryPoints entry_points;
  find_device_functions(resolver, entry_points);
  find_memory_functions(resolver, entry_points);
  find_stream_functions(resolver, entry_points);
  if (resolver.missing() != nullptr) return unsupported(resolver.missing());
  return entry_points;
}

}  // namespace v0
}  // namespace bursar
