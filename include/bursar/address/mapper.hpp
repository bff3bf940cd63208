// SPDX-License-Identifier: Apache-2.0
// Mapper: puts an extent at an address, or takes it away, as one transaction.
//
// Mapping takes two driver calls and either may fail. Whatever fails, the state before is restored;
// where the undo itself fails, the extent is quarantined at that address and the caller must not
// use the address again until `ExtentPool::retry_quarantine` reports it free.
#pragma once

#include <vector>

#include <bursar/core/lock_rank.hpp>
#include <bursar/core/result.hpp>
#include <bursar/driver/driver.hpp>
#include <bursar/physical/extent_pool.hpp>

namespace bursar {
inline namespace v0 {

class BURSAR_EXPORT Mapper {
 public:
  /// `devices`: the access list, the own device first, then peers.
  Mapper(Driver& driver, ExtentPool& pool, std::vector<DeviceId> devices);

  /// Maps the unmapped extent at `address` with access for the access list. On failure the extent
  /// is as it was, or quarantined with `mapped_at` == address. `clear_on`: an unclean extent is
  /// cleared in that stream's order; a failure of that counts like one to map.
  result<void> map(const VmmLock& lock, Extent& extent, DeviceAddress address,
                   const StreamHandle* clear_on = nullptr);
  /// Maps an extent that is mapped already at a second address, where its blocks live from now on;
  /// the earlier mapping stays and is counted in `old_mappings`. Where the undo fails, the mapping
  /// that could not be taken away again is one more old mapping, reported in `stuck`. `clear_on`:
  /// it comes to a new domain, and is cleared in that stream's order.
  result<void> map_again(const VmmLock& lock, Extent& extent, DeviceAddress address, bool& stuck,
                         const StreamHandle* clear_on = nullptr);
  /// Maps an extent that has a home at a further address, counted in `old_mappings`; its home stays
  /// where it is. `stuck` as in map_again.
  result<void> map_view(const VmmLock& lock, Extent& extent, DeviceAddress address, bool& stuck);
  /// Takes the current mapping away. On failure it is still there and usable.
  /// Precondition: no work uses it any more.
  result<void> unmap(const VmmLock& lock, Extent& extent);
  /// Takes an old mapping of the extent away. On failure it is still there.
  result<void> unmap_old(const VmmLock& lock, Extent& extent, DeviceAddress address);

 private:
  enum class Outcome { done, undone, stuck };
  Outcome try_map(const Extent& extent, DeviceAddress address, const StreamHandle* clear_on,
                  error& why);

  Driver& driver_;
  ExtentPool& pool_;
  std::vector<DeviceId> devices_;
};

}  // namespace v0
}  // namespace bursar
