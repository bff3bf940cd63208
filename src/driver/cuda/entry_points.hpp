// SPDX-License-Identifier: Apache-2.0
// EntryPoints: the driver functions that CudaDriver calls, by their exact types.
//
// Each type carries the CUDA version in which that signature appeared, and each function is asked
// for as of CUDA 12.4, the oldest driver supported. A newer header or driver can therefore never
// slip a changed signature under an old call. Legacy default-stream variants throughout: a null
// stream means the legacy default stream, whatever the program was compiled for.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <bursar/core/result.hpp>

namespace bursar {
inline namespace v0 {

struct EntryPoints {
  PFN_cuInit_v2000 init = nullptr;
  PFN_cuDeviceGetCount_v2000 device_get_count = nullptr;
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDeviceGetName_v2000 device_get_name = nullptr;
  PFN_cuDeviceGetUuid_v11040 device_get_uuid = nullptr;
  PFN_cuDeviceTotalMem_v3020 device_total_mem = nullptr;
  PFN_cuDeviceGetAttribute_v2000 device_get_attribute = nullptr;

  PFN_cuDevicePrimaryCtxRetain_v7000 primary_ctx_retain = nullptr;
  PFN_cuDevicePrimaryCtxRelease_v11000 primary_ctx_release = nullptr;
  PFN_cuCtxGetCurrent_v4000 ctx_get_current = nullptr;
  PFN_cuCtxPushCurrent_v4000 ctx_push_current = nullptr;
  PFN_cuCtxPopCurrent_v4000 ctx_pop_current = nullptr;
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode = nullptr;

  PFN_cuMemGetInfo_v3020 mem_get_info = nullptr;
  PFN_cuMemGetAllocationGranularity_v10020 mem_get_granularity = nullptr;
  PFN_cuMemCreate_v10020 mem_create = nullptr;
  PFN_cuMemRelease_v10020 mem_release = nullptr;
  PFN_cuMemExportToShareableHandle_v10020 mem_export = nullptr;
  PFN_cuMemImportFromShareableHandle_v10020 mem_import = nullptr;
  PFN_cuMemAddressReserve_v10020 mem_address_reserve = nullptr;
  PFN_cuMemAddressFree_v10020 mem_address_free = nullptr;
  PFN_cuMemMap_v10020 mem_map = nullptr;
  PFN_cuMemSetAccess_v10020 mem_set_access = nullptr;
  PFN_cuMemUnmap_v10020 mem_unmap = nullptr;
  PFN_cuMemAlloc_v3020 mem_alloc = nullptr;
  PFN_cuMemFree_v3020 mem_free = nullptr;
  PFN_cuDeviceGetDefaultMemPool_v11020 device_get_default_mem_pool = nullptr;
  PFN_cuDeviceGetMemPool_v11020 device_get_mem_pool = nullptr;
  PFN_cuMemPoolTrimTo_v11020 mem_pool_trim_to = nullptr;
  PFN_cuDeviceGraphMemTrim_v11040 device_graph_mem_trim = nullptr;

  PFN_cuStreamCreate_v2000 stream_create = nullptr;
  PFN_cuStreamDestroy_v4000 stream_destroy = nullptr;
  PFN_cuStreamSynchronize_v2000 stream_synchronize = nullptr;
  PFN_cuStreamGetId_v12000 stream_get_id = nullptr;
  PFN_cuStreamIsCapturing_v10000 stream_is_capturing = nullptr;
  PFN_cuStreamWaitEvent_v3020 stream_wait_event = nullptr;
  PFN_cuEventCreate_v2000 event_create = nullptr;
  PFN_cuEventDestroy_v4000 event_destroy = nullptr;
  PFN_cuEventRecord_v2000 event_record = nullptr;
  PFN_cuEventQuery_v2000 event_query = nullptr;
  PFN_cuMemsetD8Async_v3020 memset_d8_async = nullptr;
  PFN_cuMemsetD32Async_v3020 memset_d32_async = nullptr;
  PFN_cuMemcpyDtoHAsync_v3020 memcpy_dtoh_async = nullptr;
};

/// Loads libcuda.so.1 and resolves every entry point; calls none but the version query.
/// `not_supported`: no such library, a driver older than 12.4, or an entry point is missing (the
/// message names it). The library stays loaded for the life of the process.
result<EntryPoints> load_entry_points();

}  // namespace v0
}  // namespace bursar
