// SPDX-License-Identifier: Apache-2.0
// The tries behind probe_device, each undone by a destructor.
#include "device_probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "relaxed_capture.hpp"

namespace bursar {
inline namespace v0 {
namespace {

/// The page of a device that has no granularity of its own to tell (level no_vmm).
constexpr Bytes kPlainPage{2ull << 20};

/// One extent and up to two mappings of it.
class ProbeExtent {
 public:
  ProbeExtent(const EntryPoints& api, const CUmemAllocationProp& properties, Bytes size)
      : api_(api), location_(properties.location), size_(size.count) {
    created_ = api_.mem_create(&handle_, size_, &properties, 0) == CUDA_SUCCESS;
  }
  ~ProbeExtent() {
    for (std::size_t i = 0; i < mapped_; ++i) {
      api_.mem_unmap(addresses_[i], size_);
      api_.mem_address_free(addresses_[i], size_);
    }
    if (created_) api_.mem_release(handle_);
  }
  ProbeExtent(const ProbeExtent&) = delete;
  ProbeExtent& operator=(const ProbeExtent&) = delete;

  /// Maps the extent at a new address; 0 when that, or access to it, is refused.
  CUdeviceptr map() {
    CUdeviceptr at = 0;
    if (!created_ || api_.mem_address_reserve(&at, size_, 0, 0, 0) != CUDA_SUCCESS) return 0;
    if (api_.mem_map(at, size_, 0, handle_, 0) != CUDA_SUCCESS) {
      api_.mem_address_free(at, size_);
      return 0;
    }
    addresses_[mapped_++] = at;
    const CUmemAccessDesc access{location_, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return api_.mem_set_access(at, size_, &access, 1) == CUDA_SUCCESS ? at : 0;
  }

  /// True when the extent comes back from a file descriptor.
  bool survives_exchange() {
    int fd = -1;
    if (!created_ || api_.mem_export(&fd, handle_, kFileDescriptor, 0) != CUDA_SUCCESS)
      return false;
    CUmemGenericAllocationHandle imported = 0;
    const bool ok = api_.mem_import(&imported, to_os_handle(fd), kFileDescriptor) == CUDA_SUCCESS;
    if (ok) api_.mem_release(imported);
    close(fd);
    return ok;
  }

 private:
  const EntryPoints& api_;
  CUmemLocation location_;
  std::size_t size_;
  CUmemGenericAllocationHandle handle_ = 0;
  bool created_ = false;
  std::array<CUdeviceptr, 2> addresses_{};
  std::size_t mapped_ = 0;
};

/// The page that suits every extent of `info`'s properties; false when the driver tells none.
bool find_granularity(const EntryPoints& api, DeviceInfo& info) {
  std::size_t page = 0;
  for (const bool shareable : {false, true}) {
    const auto properties = allocation_properties(info, {.shareable = shareable});
    std::size_t needed = 0;
    if (api.mem_get_granularity(&needed, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
        CUDA_SUCCESS) {
      return false;
    }
    page = std::max(page, needed);
  }
  info.granularity = Bytes{page};
  return is_power_of_two(info.granularity);
}

/// True when extents with the properties `info` names can be made and mapped, shareable or not.
bool properties_work(const EntryPoints& api, DeviceInfo& info) {
  if (!find_granularity(api, info)) return false;
  ProbeExtent own(api, allocation_properties(info, {}), info.granularity);
  if (own.map() == 0) return false;
  if (!info.shareable_fd) return true;
  ProbeExtent shared(api, allocation_properties(info, {.shareable = true}), info.granularity);
  return shared.map() != 0 && shared.survives_exchange();
}

/// Writes through one address and reads through another, on a stream of its own: the legacy default
/// stream would wait for, or spoil, what others are doing.
bool aliases_work(const EntryPoints& api, const DeviceInfo& info) {
  ProbeExtent extent(api, allocation_properties(info, {}), info.granularity);
  const CUdeviceptr written = extent.map();
  const CUdeviceptr read = extent.map();
  CUstream stream = nullptr;
  if (written == 0 || read == 0) return false;
  if (api.stream_create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
  constexpr unsigned kPattern = 0xb0a5'a12eu;
  unsigned seen = 0;
  const bool ran = api.memset_d32_async(written, kPattern, 1, stream) == CUDA_SUCCESS &&
                   api.memcpy_dtoh_async(&seen, read, sizeof seen, stream) == CUDA_SUCCESS;
  const bool done = api.stream_synchronize(stream) == CUDA_SUCCESS;
  api.stream_destroy(stream);
  return ran && done && seen == kPattern;
}

/// What holds when nothing more is known: memory comes from cuMemAlloc.
void be_plain(DeviceInfo& info) {
  info.shareable_fd = false;
  info.gpu_direct_rdma = false;
  info.capability = CapabilityLevel::no_vmm;
  info.granularity = kPlainPage;
}

/// Tries the richest properties first and leaves in `info` what works.
void find_capability(const EntryPoints& api, bool may_share, bool may_rdma, DeviceInfo& info) {
  struct Candidate {
    bool fd, rdma;
  };
  for (const auto [fd, rdma] : {Candidate{true, true}, {true, false}, {false, true}, {}}) {
    if ((fd && !may_share) || (rdma && !may_rdma)) continue;
    info.shareable_fd = fd;
    info.gpu_direct_rdma = rdma;
    if (!properties_work(api, info)) continue;
    info.capability = aliases_work(api, info) ? CapabilityLevel::full : CapabilityLevel::no_aliases;
    return;
  }
  be_plain(info);
}

}  // namespace

CUmemAllocationProp allocation_properties(const DeviceInfo& info,
                                          ExtentProperties wanted) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = info.id.value;
  properties.requestedHandleTypes =
      wanted.shareable && info.shareable_fd ? kFileDescriptor : CU_MEM_HANDLE_TYPE_NONE;
  properties.allocFlags.gpuDirectRDMACapable = info.gpu_direct_rdma ? 1 : 0;
  return properties;
}

CUresult probe_device(const EntryPoints& api, PrimaryContexts& contexts, CUdevice device,
                      DeviceInfo& info) {
  be_plain(info);
  CUcontext context = nullptr;
  if (const CUresult code = contexts.get(info.id, context); code != CUDA_SUCCESS) return code;
  const ContextScope scope(api, context, false);
  if (scope.code() != CUDA_SUCCESS) return scope.code();
  const RelaxedCapture relaxed(api);

  std::array<char, 256> name{};
  CUuuid uuid{};
  std::size_t total = 0;
  constexpr int kNameSize = static_cast<int>(name.size());
  for (const CUresult code :
       {api.device_get_name(name.data(), kNameSize, device), api.device_get_uuid(&uuid, device),
        api.device_total_mem(&total, device)}) {
    if (code != CUDA_SUCCESS) return code;
  }
  info.name = name.data();
  std::memcpy(info.uuid.data(), uuid.bytes, info.uuid.size());
  info.total = Bytes{total};

  const auto has = [&](CUdevice_attribute attribute) {
    int value = 0;
    return api.device_get_attribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
  };
  if (has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
    find_capability(api, has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
                    has(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED), info);
  }
  return CUDA_SUCCESS;
}

}  // namespace v0
}  // namespace bursar
