// SPDX-License-Identifier: Apache-2.0
// The driver's part of a growth plan.
#include <bursar/allocator/growth_runner.hpp>

#include <bursar/allocator/arena.hpp>

namespace bursar {
inline namespace v0 {

result<void> GrowthRunner::run(const VmmLock& lock, GrowthPlan& plan) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].source != nullptr) {
      if (result<void> moved = move(lock, plan, plan.steps[i]); !moved) return moved;
      continue;
    }
    const VaRange target = plan.steps[i].target;
    if (result<void> put = put_fresh(lock, plan, plan.steps[i]); !put) return put;
    if (plan.steps[i].target.size < target.size) {  // a smaller extent came: the rest is next
      GrowthStep rest;
      rest.target = {plan.steps[i].target.end(), target.size - plan.steps[i].target.size};
      plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
    }
  }
  return {};
}

result<void> GrowthRunner::leave_views(const VmmLock& lock, Extent& extent,
                                       std::vector<std::pair<Block*, bool>>& views) {
  for (auto& [address, gone] : views) {
    if (result<void> left = mapper_.unmap_old(lock, extent, address->begin); !left) return left;
    gone = true;
  }
  return {};
}

namespace {
const StreamHandle* clear_on(const GrowthPlan& plan) {
  return plan.clear_on ? &*plan.clear_on : nullptr;
}
}  // namespace

result<void> GrowthRunner::move(const VmmLock& lock, const GrowthPlan& plan, GrowthStep& step) {
  Extent& extent = *step.extent;
  const DomainId domain = plan.arena->domain;
  const bool clears = plan.clear_on && extent.domain != domain;
  if (!step.alias) {
    if (result<void> left = leave_views(lock, extent, step.views); !left) return left;
  }
  // An extent that still has an old mapping could not be kept spare if mapping it failed: it is
  // mapped once more instead, and both earlier mappings go later.
  step.alias = step.alias || extent.old_mappings > 0;
  result<ExtentReservation> paid = pool_.reserve_charge(lock, extent, domain);
  if (!paid) return paid.failure();
  if (step.alias) {
    bool stuck = false;
    result<void> mapped = mapper_.map_again(lock, extent, step.target.begin, stuck,
                                            clears ? clear_on(plan) : nullptr);
    if (mapped) {
      pool_.move_charge(lock, extent, domain, std::move(*paid));
      if (clears) extent.unclean = false;
      step.cleared = clears;
      step.outcome = GrowthStep::Outcome::done;
    } else if (stuck) {
      step.outcome = GrowthStep::Outcome::stuck;
    }
    return mapped;
  }
  if (result<void> unmapped = mapper_.unmap(lock, extent); !unmapped) return unmapped;
  pool_.move_charge(lock, extent, domain, std::move(*paid));
  result<void> mapped = mapper_.map(lock, extent, step.target.begin, clear_on(plan));
  if (mapped) {
    step.cleared = clears;
    step.outcome = GrowthStep::Outcome::done;
  } else if (extent.state == ExtentState::quarantined) {
    step.outcome = GrowthStep::Outcome::stuck;
  } else {
    pool_.keep_spare(lock, extent);
    step.outcome = GrowthStep::Outcome::unmapped;
  }
  return mapped;
}

result<Extent*> GrowthRunner::fresh_extent(const VmmLock& lock, const GrowthPlan& plan,
                                           PageCount pages, DomainId domain) {
  if (!plan.dedicated) {
    if (Extent* spare = pool_.take_spare(lock, pages, domain)) return spare;
  }
  for (;;) {
    result<Extent*> made = pool_.create(lock, pages, domain, plan.properties);
    // Near a limit a smaller extent may still fit, and the rest may be found elsewhere.
    if (made || !made.failure().retryable() || plan.dedicated || pages.value == 1) return made;
    pages.value /= 2;
  }
}

result<void> GrowthRunner::put_fresh(const VmmLock& lock, const GrowthPlan& plan,
                                     GrowthStep& step) {
  const PageCount pages = pages_for(step.target.size, pool_.page());
  result<Extent*> extent = fresh_extent(lock, plan, pages, plan.arena->domain);
  if (!extent) return extent.failure();
  (*extent)->dedicated = plan.dedicated;
  step.extent = *extent;
  step.target.size = (*extent)->size;
  return map_fresh(lock, plan, step, **extent);
}

result<void> GrowthRunner::map_fresh(const VmmLock& lock, const GrowthPlan& plan, GrowthStep& step,
                                     Extent& extent) {
  const bool clears = plan.clear_on && extent.unclean;
  result<void> mapped = mapper_.map(lock, extent, step.target.begin, clear_on(plan));
  if (mapped) {
    step.cleared = clears;
    step.outcome = GrowthStep::Outcome::done;
  } else if (extent.state == ExtentState::quarantined) {
    step.outcome = GrowthStep::Outcome::stuck;
  } else {
    extent.dedicated = false;
    pool_.keep_spare(lock, extent);
  }
  return mapped;
}

}  // namespace v0
}  // namespace bursar
