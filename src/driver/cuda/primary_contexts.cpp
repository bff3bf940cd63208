// SPDX-License-Identifier: Apache-2.0
// Retaining and releasing primary contexts.
#include "primary_contexts.hpp"

#include "fork_watch.hpp"

namespace bursar {
inline namespace v0 {

PrimaryContexts::PrimaryContexts(const EntryPoints& api, const std::vector<CUdevice>& devices)
    : api_(api), fork_generation_(fork_generation()), slots_(devices.size()) {
  for (std::size_t i = 0; i < devices.size(); ++i) slots_[i].device = devices[i];
}

PrimaryContexts::~PrimaryContexts() {
  CUcontext current = nullptr;
  if (fork_generation() != fork_generation_) return;
  if (api_.ctx_get_current(&current) == CUDA_ERROR_DEINITIALIZED) return;
  release_all();
}

CUresult PrimaryContexts::get(DeviceId device, CUcontext& out) noexcept {
  if (device.value < 0 || static_cast<std::size_t>(device.value) >= slots_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  Slot& slot = slots_[static_cast<std::size_t>(device.value)];
  out = slot.context.load(std::memory_order_acquire);
  if (out != nullptr) return CUDA_SUCCESS;

  const lock_proof lock(mutex_);
  out = slot.context.load(std::memory_order_relaxed);
  if (out != nullptr) return CUDA_SUCCESS;
  const CUresult code = api_.primary_ctx_retain(&out, slot.device);
  if (code != CUDA_SUCCESS) return code;
  slot.context.store(out, std::memory_order_release);
  if (any() == nullptr) any_.store(out, std::memory_order_release);
  return CUDA_SUCCESS;
}

void PrimaryContexts::release_all() noexcept {
  any_.store(nullptr, std::memory_order_relaxed);
  for (Slot& slot : slots_) {
    if (slot.context.exchange(nullptr) != nullptr) api_.primary_ctx_release(slot.device);
  }
}

}  // namespace v0
}  // namespace bursar
