// SPDX-License-Identifier: Apache-2.0
// GrowthRunner: carries a plan's steps out with the driver.
//
// Each step is a transaction of its own: it is done, or its extent is where it was, or (where the
// undo failed) it is spare or quarantined and `outcome` says so. A plan that fails half way keeps
// the steps that were done: memory that was idle elsewhere is idle here now, and nothing is lost.
#pragma once

#include <bursar/address/mapper.hpp>
#include <bursar/allocator/growth_plan.hpp>
#include <bursar/physical/extent_pool.hpp>

namespace bursar {
inline namespace v0 {

/// Used under the device's VMM lock only.
class BURSAR_EXPORT GrowthRunner {
 public:
  GrowthRunner(ExtentPool& pool, Mapper& mapper) : pool_(pool), mapper_(mapper) {}

  /// Runs the steps in order until one fails; the error says why. A fresh step may be split into
  /// several where spare extents, or a nearly full device, want smaller ones.
  result<void> run(const VmmLock& lock, GrowthPlan& plan);
  /// Takes away the mappings of views that an extent has left, flagging each that is gone.
  result<void> leave_views(const VmmLock& lock, Extent& extent,
                           std::vector<std::pair<Block*, bool>>& views);

 private:
  result<void> move(const VmmLock& lock, const GrowthPlan& plan, GrowthStep& step);
  result<void> put_fresh(const VmmLock& lock, const GrowthPlan& plan, GrowthStep& step);
  result<Extent*> fresh_extent(const VmmLock& lock, const GrowthPlan& plan, PageCount pages,
                               DomainId domain);
  result<void> map_fresh(const VmmLock& lock, const GrowthPlan& plan, GrowthStep& step,
                         Extent& extent);

  ExtentPool& pool_;
  Mapper& mapper_;
};

}  // namespace v0
}  // namespace bursar
