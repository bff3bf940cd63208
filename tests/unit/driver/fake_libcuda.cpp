// SPDX-License-Identifier: Apache-2.0
// The functions of the pretended libcuda.so.1. One word of memory an extent is enough to tell
// whether two addresses mean the same.
#include "fake_libcuda.hpp"

#include <fcntl.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

using bursar::test::FakeCuda;

FakeCuda state;
std::map<CUdeviceptr, CUmemGenericAllocationHandle> extent_mapped_at;
std::map<std::uint64_t, unsigned> words;  // by extent; by address where there are no aliases
CUdeviceptr next_address = 0x1'0000'0000;
std::uint64_t next_handle = 1;

/// Notes the call; what the test wants it to return.
CUresult enter(const char* name) {
  state.calls.push_back({name, state.stack.empty() ? nullptr : state.stack.back(), state.mode});
  const auto found = state.refused.find(name);
  return found == state.refused.end() ? CUDA_SUCCESS : found->second;
}

template <class T>
T make_handle() {
  return reinterpret_cast<T>(static_cast<std::uintptr_t>(next_handle++));
}

CUcontext primary_of(CUdevice device) {
  return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(0x1000 + device));
}

unsigned& word_at(CUdeviceptr address) {
  return words[state.aliases ? extent_mapped_at[address] : address];
}

CUresult get_count(int* out) { return *out = state.devices, enter("cuDeviceGetCount"); }
CUresult get_device(CUdevice* out, int i) { return *out = i, enter("cuDeviceGet"); }
CUresult init(unsigned) { return enter("cuInit"); }
CUresult get_name(char* out, int size, CUdevice) {
  std::snprintf(out, static_cast<std::size_t>(size), "Pretended GPU");
  return enter("cuDeviceGetName");
}
CUresult get_uuid(CUuuid* out, CUdevice device) {
  std::memset(out->bytes, 0x40 + device, sizeof out->bytes);
  return enter("cuDeviceGetUuid");
}
CUresult total_mem(std::size_t* out, CUdevice) {
  return *out = 1u << 30, enter("cuDeviceTotalMem");
}
CUresult get_attribute(int* out, CUdevice_attribute attribute, CUdevice) {
  const auto found = state.attributes.find(attribute);
  *out = found == state.attributes.end() ? 1 : found->second;
  return enter("cuDeviceGetAttribute");
}

CUresult retain(CUcontext* out, CUdevice device) {
  if (const CUresult code = enter("cuDevicePrimaryCtxRetain"); code != CUDA_SUCCESS) return code;
  state.retained.resize(static_cast<std::size_t>(state.devices));
  ++state.retained[static_cast<std::size_t>(device)];
  *out = primary_of(device);
  return CUDA_SUCCESS;
}
CUresult release_context(CUdevice device) {
  --state.retained[static_cast<std::size_t>(device)];
  return enter("cuDevicePrimaryCtxRelease");
}
CUresult get_current(CUcontext* out) {
  *out = state.stack.empty() ? nullptr : state.stack.back();
  return enter("cuCtxGetCurrent");
}
CUresult push(CUcontext context) {
  return state.stack.push_back(context), enter("cuCtxPushCurrent");
}
CUresult pop(CUcontext* out) {
  *out = state.stack.back();
  state.stack.pop_back();
  return enter("cuCtxPopCurrent");
}
CUresult exchange(CUstreamCaptureMode* mode) {
  std::swap(*mode, state.mode);
  return enter("cuThreadExchangeStreamCaptureMode");
}

CUresult get_info(std::size_t* free, std::size_t* total) {
  *free = 1u << 29;
  *total = 1u << 30;
  return enter("cuMemGetInfo");
}
CUresult granularity(std::size_t* out, const CUmemAllocationProp* prop,
                     CUmemAllocationGranularity_flags) {
  *out = prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ? 2u << 20 : 4u << 20;
  return enter("cuMemGetAllocationGranularity");
}
CUresult create(CUmemGenericAllocationHandle* out, std::size_t, const CUmemAllocationProp* prop,
                unsigned long long) {
  if (const CUresult code = enter("cuMemCreate"); code != CUDA_SUCCESS) return code;
  if (state.refuses_rdma && prop->allocFlags.gpuDirectRDMACapable != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (state.refuses_fd && prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_NOT_PERMITTED;
  }
  *out = next_handle++;
  ++state.live_extents;
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle) {
  const CUresult code = enter("cuMemRelease");
  if (code == CUDA_SUCCESS) --state.live_extents;
  return code;
}
CUresult export_fd(void* out, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                   unsigned long long) {
  *static_cast<int*>(out) = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return enter("cuMemExportToShareableHandle");
}
CUresult import_fd(CUmemGenericAllocationHandle* out, void*, CUmemAllocationHandleType) {
  const CUresult code = enter("cuMemImportFromShareableHandle");
  if (code != CUDA_SUCCESS) return code;
  *out = next_handle++;
  ++state.live_extents;
  return CUDA_SUCCESS;
}
CUresult reserve(CUdeviceptr* out, std::size_t size, std::size_t, CUdeviceptr, unsigned long long) {
  *out = next_address;
  next_address += size;
  return enter("cuMemAddressReserve");
}
CUresult unreserve(CUdeviceptr, std::size_t) { return enter("cuMemAddressFree"); }
CUresult map(CUdeviceptr at, std::size_t, std::size_t, CUmemGenericAllocationHandle extent,
             unsigned long long) {
  const CUresult code = enter("cuMemMap");
  if (code != CUDA_SUCCESS) return code;
  extent_mapped_at[at] = extent;
  ++state.live_mappings;
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
  return enter("cuMemSetAccess");
}
CUresult unmap(CUdeviceptr at, std::size_t) {
  extent_mapped_at.erase(at);
  --state.live_mappings;
  return enter("cuMemUnmap");
}
CUresult alloc(CUdeviceptr* out, std::size_t size) {
  *out = next_address;
  next_address += size;
  return enter("cuMemAlloc");
}
CUresult free_memory(CUdeviceptr) { return enter("cuMemFree"); }
CUresult default_pool(CUmemoryPool* out, CUdevice) {
  return *out = make_handle<CUmemoryPool>(), enter("cuDeviceGetDefaultMemPool");
}
CUresult current_pool(CUmemoryPool* out, CUdevice) {
  return *out = make_handle<CUmemoryPool>(), enter("cuDeviceGetMemPool");
}
CUresult trim_pool(CUmemoryPool, std::size_t) { return enter("cuMemPoolTrimTo"); }
CUresult trim_graphs(CUdevice) { return enter("cuDeviceGraphMemTrim"); }

CUresult stream_create(CUstream* out, unsigned) {
  const CUresult code = enter("cuStreamCreate");
  if (code != CUDA_SUCCESS) return code;
  *out = make_handle<CUstream>();
  ++state.live_streams;
  return CUDA_SUCCESS;
}
CUresult stream_destroy(CUstream) { return --state.live_streams, enter("cuStreamDestroy"); }
CUresult stream_synchronize(CUstream) { return enter("cuStreamSynchronize"); }
CUresult stream_id(CUstream, unsigned long long* out) { return *out = 7, enter("cuStreamGetId"); }
CUresult capturing(CUstream, CUstreamCaptureStatus* out) {
  *out = CU_STREAM_CAPTURE_STATUS_NONE;
  return enter("cuStreamIsCapturing");
}
CUresult wait_event(CUstream, CUevent, unsigned) { return enter("cuStreamWaitEvent"); }
CUresult event_create(CUevent* out, unsigned) {
  return *out = make_handle<CUevent>(), enter("cuEventCreate");
}
CUresult event_destroy(CUevent) { return enter("cuEventDestroy"); }
CUresult event_record(CUevent, CUstream) { return enter("cuEventRecord"); }
CUresult event_query(CUevent) { return enter("cuEventQuery"); }
CUresult memset_bytes(CUdeviceptr, unsigned char, std::size_t, CUstream) {
  return enter("cuMemsetD8Async");
}
CUresult memset_words(CUdeviceptr at, unsigned value, std::size_t, CUstream) {
  return word_at(at) = value, enter("cuMemsetD32Async");
}
CUresult read_back(void* out, CUdeviceptr at, std::size_t size, CUstream) {
  std::memcpy(out, &word_at(at), size);
  return enter("cuMemcpyDtoHAsync");
}

template <class Function>
void* entry(Function* function) {
  return reinterpret_cast<void*>(function);
}

const std::map<std::string, void*>& functions() {
  static const std::map<std::string, void*> all{
      {"cuInit", entry(init)},
      {"cuDeviceGetCount", entry(get_count)},
      {"cuDeviceGet", entry(get_device)},
      {"cuDeviceGetName", entry(get_name)},
      {"cuDeviceGetUuid", entry(get_uuid)},
      {"cuDeviceTotalMem", entry(total_mem)},
      {"cuDeviceGetAttribute", entry(get_attribute)},
      {"cuDevicePrimaryCtxRetain", entry(retain)},
      {"cuDevicePrimaryCtxRelease", entry(release_context)},
      {"cuCtxGetCurrent", entry(get_current)},
      {"cuCtxPushCurrent", entry(push)},
      {"cuCtxPopCurrent", entry(pop)},
      {"cuThreadExchangeStreamCaptureMode", entry(exchange)},
      {"cuMemGetInfo", entry(get_info)},
      {"cuMemGetAllocationGranularity", entry(granularity)},
      {"cuMemCreate", entry(create)},
      {"cuMemRelease", entry(release)},
      {"cuMemExportToShareableHandle", entry(export_fd)},
      {"cuMemImportFromShareableHandle", entry(import_fd)},
      {"cuMemAddressReserve", entry(reserve)},
      {"cuMemAddressFree", entry(unreserve)},
      {"cuMemMap", entry(map)},
      {"cuMemSetAccess", entry(set_access)},
      {"cuMemUnmap", entry(unmap)},
      {"cuMemAlloc", entry(alloc)},
      {"cuMemFree", entry(free_memory)},
      {"cuDeviceGetDefaultMemPool", entry(default_pool)},
      {"cuDeviceGetMemPool", entry(current_pool)},
      {"cuMemPoolTrimTo", entry(trim_pool)},
      {"cuDeviceGraphMemTrim", entry(trim_graphs)},
      {"cuStreamCreate", entry(stream_create)},
      {"cuStreamDestroy", entry(stream_destroy)},
      {"cuStreamSynchronize", entry(stream_synchronize)},
      {"cuStreamGetId", entry(stream_id)},
      {"cuStreamIsCapturing", entry(capturing)},
      {"cuStreamWaitEvent", entry(wait_event)},
      {"cuEventCreate", entry(event_create)},
      {"cuEventDestroy", entry(event_destroy)},
      {"cuEventRecord", entry(event_record)},
      {"cuEventQuery", entry(event_query)},
      {"cuMemsetD8Async", entry(memset_bytes)},
      {"cuMemsetD32Async", entry(memset_words)},
      {"cuMemcpyDtoHAsync", entry(read_back)},
  };
  return all;
}

}  // namespace

extern "C" {

FakeCuda* fake_cuda() { return &state; }

CUresult cuDriverGetVersion(int* version) {
  *version = state.version;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** out, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult* found) {
  if (version > state.version) return CUDA_ERROR_INVALID_VALUE;
  const auto entry = functions().find(symbol);
  const bool has = entry != functions().end() && state.missing != symbol;
  *out = has ? entry->second : nullptr;
  if (found != nullptr) {
    *found = has ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
