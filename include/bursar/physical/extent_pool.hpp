// SPDX-License-Identifier: Apache-2.0
// ExtentPool: every extent of one device that this allocator holds, and the only place where
// extents are created and released.
//
// An extent that leaves a range is kept *spare* for the next growth, since creating one costs more
// than mapping it. An extent whose undo failed is *quarantined*: it stays paid for, is never
// reused, and its undo is tried again. All operations happen under the device's VMM lock, which is
// the one lock that may be held across driver calls.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <bursar/core/lock_rank.hpp>
#include <bursar/driver/driver.hpp>
#include <bursar/physical/extent.hpp>
#include <bursar/physical/extent_gate.hpp>

namespace bursar {
inline namespace v0 {

class BURSAR_EXPORT ExtentPool {
 public:
  ExtentPool(Driver& driver, DeviceId device, ExtentGate& gate);
  /// Releases every extent, whatever its state; failures are logged.
  /// Precondition: nothing is mapped.
  ~ExtentPool();
  ExtentPool(const ExtentPool&) = delete;
  ExtentPool& operator=(const ExtentPool&) = delete;

  /// A new extent, unmapped (at level no_vmm: mapped for life), paid by `domain`. over_budget when
  /// the gate refuses, device_oom when the device does; in both cases nothing has changed.
  result<Extent*> create(const VmmLock& lock, PageCount pages, DomainId domain,
                         ExtentProperties properties = {});
  /// The largest spare extent of at most `most` pages, now paid by `domain`; null when there is
  /// none or `domain` may not pay it.
  Extent* take_spare(const VmmLock& lock, PageCount most, DomainId domain);
  /// What `domain` must pay to take the extent over; over_budget when it may not. Dropping it
  /// changes nothing; `move_charge` is what takes the extent over.
  result<ExtentReservation> reserve_charge(const VmmLock& lock, const Extent& extent,
                                           DomainId domain);
  void move_charge(const VmmLock& lock, Extent& extent, DomainId domain, ExtentReservation paid);
  /// Keeps an unmapped extent for later.
  void keep_spare(const VmmLock& lock, Extent& extent);
  /// Gives an unmapped extent back to the driver. Where the driver refuses, it is quarantined.
  result<void> release(const VmmLock& lock, Extent& extent);
  /// Releases spare extents, largest first, until `bytes` are given back. Returns the bytes.
  Bytes release_spare(const VmmLock& lock, Bytes bytes);
  void quarantine(const VmmLock& lock, Extent& extent);
  /// Tries again to unmap and release what is quarantined. Returns the extents that were mapped
  /// and no longer are, as the addresses that are free again.
  std::vector<VaRange> retry_quarantine(const VmmLock& lock);

  Bytes page() const noexcept { return page_; }
  DeviceId device() const noexcept { return device_; }
  /// Readable without the lock.
  Bytes reserved() const noexcept { return Bytes{reserved_.load(std::memory_order_relaxed)}; }
  Bytes reserved_peak() const noexcept { return Bytes{peak_.load(std::memory_order_relaxed)}; }
  Bytes spare() const noexcept { return Bytes{spare_.load(std::memory_order_relaxed)}; }
  Bytes quarantined() const noexcept { return Bytes{quarantined_.load(std::memory_order_relaxed)}; }
  void reset_peak() noexcept { peak_.store(reserved_.load()); }

  const std::vector<std::unique_ptr<Extent>>& extents(const VmmLock&) const { return extents_; }
  /// Sums and states agree with the list.
  result<void> validate(const VmmLock& lock) const;

 private:
  DriverCode give_back(const Extent& extent);
  void forget(Extent& extent);

  Driver& driver_;
  ExtentGate& gate_;
  DeviceId device_;
  Bytes page_;
  bool plain_;  ///< level no_vmm: an extent is an allocation with an address of its own
  std::vector<std::unique_ptr<Extent>> extents_;
  std::vector<Extent*> spares_;
  std::uint64_t next_id_ = 1;
  std::atomic<std::uint64_t> reserved_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<std::uint64_t> spare_{0};
  std::atomic<std::uint64_t> quarantined_{0};
};

}  // namespace v0
}  // namespace bursar
