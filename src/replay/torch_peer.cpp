// SPDX-License-Identifier: Apache-2.0
// The module: c10's CUDACachingAllocator, driven as PyTorch's tensors drive it.
//
// Only libc10 and libc10_cuda are needed, not the rest of PyTorch. The kind of segments is chosen
// by the setting that PYTORCH_CUDA_ALLOC_CONF also sets; new segments obey it, and as the cache is
// emptied first, all there are. That it took effect is read back from the allocator.
#include "torch_peer.hpp"

#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>

#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace bursar {
inline namespace v0 {
namespace {

namespace torch_cache = c10::cuda::CUDACachingAllocator;

std::string& last_message() {
  thread_local std::string message;
  return message;
}

/// Calls `call`; nothing is thrown across the table.
template <class Call>
TorchOutcome guarded(Call&& call) {
  try {
    call();
    return TorchOutcome::done;
  } catch (const c10::OutOfMemoryError&) {
    return TorchOutcome::out_of_memory;
  } catch (const c10::Error& e) {
    last_message() = e.what_without_backtrace();
  } catch (const std::exception& e) {
    last_message() = e.what();
  }
  return TorchOutcome::failed;
}

torch_cache::CUDAAllocator& allocator() {
  torch_cache::CUDAAllocator* found = torch_cache::get();
  if (found == nullptr) throw std::runtime_error("PyTorch has no CUDA allocator");
  static std::once_flag once;
  std::call_once(once, [found] { found->init(1); });
  return *found;
}

TorchOutcome start(bool expandable) {
  return guarded([expandable] {
    torch_cache::CUDAAllocator& cache = allocator();
    if (cache.name() != "native") {
      throw std::runtime_error("PYTORCH_CUDA_ALLOC_CONF chooses another backend: " + cache.name());
    }
    cache.emptyCache();
    torch_cache::setAllocatorSettings(expandable ? "expandable_segments:True"
                                                 : "expandable_segments:False");
    if (cache.snapshot().config_metadata.expandable_segments != expandable) {
      throw std::runtime_error("PyTorch does not take expandable_segments here");
    }
  });
}

TorchOutcome allocate(void** out, std::size_t bytes, void* stream) {
  return guarded([&] {
    *out = torch_cache::get()->raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(stream));
  });
}

TorchOutcome deallocate(void* block) {
  return guarded([block] { torch_cache::get()->raw_delete(block); });
}

TorchOutcome memory(TorchMemory* out) {
  return guarded([out] {
    constexpr std::size_t kAll = 0;  // StatType::AGGREGATE
    torch_cache::CUDAAllocator& cache = allocator();
    const auto stats = cache.getDeviceStats(0);
    out->reserved = static_cast<std::uint64_t>(stats.reserved_bytes[kAll].current);
    out->reserved_highest = static_cast<std::uint64_t>(stats.reserved_bytes[kAll].peak);
    out->device_allocs = static_cast<std::uint64_t>(stats.num_device_alloc);
    out->device_frees = static_cast<std::uint64_t>(stats.num_device_free);
    cache.resetPeakStats(0);
  });
}

TorchOutcome stop() {
  return guarded([] { allocator().emptyCache(); });
}

const char* message() { return last_message().c_str(); }

}  // namespace
}  // namespace v0
}  // namespace bursar

extern "C" __attribute__((visibility("default"))) const bursar::TorchPeer* bursar_torch_peer() {
  static const bursar::TorchPeer peer{bursar::start,  bursar::allocate, bursar::deallocate,
                                      bursar::memory, bursar::stop,     bursar::message};
  return &peer;
}
