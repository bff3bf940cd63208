// SPDX-License-Identifier: Apache-2.0
// PrimaryContexts: one reference to the primary context of each device in use.
//
// The primary context is the one the CUDA runtime uses, so memory and events made here serve any
// runtime program. It costs some 520 MiB of device memory, hence a device nobody names keeps none.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include <bursar/core/lock_rank.hpp>
#include <bursar/driver/driver_types.hpp>

#include "entry_points.hpp"

namespace bursar {
inline namespace v0 {

/// Thread-safe. Makes no driver call once a device's context is retained.
class PrimaryContexts {
 public:
  /// `devices` in the driver's order; nothing is retained yet. `api` must outlive this.
  PrimaryContexts(const EntryPoints& api, const std::vector<CUdevice>& devices);
  /// Gives every reference back, but not in a forked child or while libcuda is shutting down.
  ~PrimaryContexts();
  PrimaryContexts(const PrimaryContexts&) = delete;
  PrimaryContexts& operator=(const PrimaryContexts&) = delete;

  /// The context of `device`, retained by the first call that names it.
  CUresult get(DeviceId device, CUcontext& out) noexcept;
  /// The context of some device in use; null when there is none.
  CUcontext any() const noexcept { return any_.load(std::memory_order_acquire); }
  /// Gives back the references of all devices. Precondition: no other thread uses this object.
  void release_all() noexcept;

 private:
  struct Slot {
    CUdevice device = 0;
    std::atomic<CUcontext> context{nullptr};
  };

  const EntryPoints& api_;
  const std::uint32_t fork_generation_;
  RankedMutex<LockRank::driver> mutex_;  ///< held while a context is made, once a device
  std::vector<Slot> slots_;
  std::atomic<CUcontext> any_{nullptr};
};

/// Makes a context current for one call and restores what was; costs 12 ns when it already is.
class ContextScope {
 public:
  /// `wanted` is current afterwards; with `any_will_do` only when no context was current.
  /// A null `wanted` changes nothing.
  ContextScope(const EntryPoints& api, CUcontext wanted, bool any_will_do) noexcept : api_(api) {
    CUcontext current = nullptr;
    code_ = api.ctx_get_current(&current);
    const bool fits = current == wanted || (any_will_do && current != nullptr);
    if (code_ != CUDA_SUCCESS || wanted == nullptr || fits) return;
    code_ = api.ctx_push_current(wanted);
    pushed_ = code_ == CUDA_SUCCESS;
  }
  ~ContextScope() {
    CUcontext popped = nullptr;
    if (pushed_) api_.ctx_pop_current(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  /// Why there is no such context now: CUDA_ERROR_DEINITIALIZED during process exit, for one.
  CUresult code() const noexcept { return code_; }

 private:
  const EntryPoints& api_;
  CUresult code_;
  bool pushed_ = false;
};

}  // namespace v0
}  // namespace bursar
