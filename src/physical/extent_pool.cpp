// SPDX-License-Identifier: Apache-2.0
// Creation and release of extents, spare and quarantine.
#include <algorithm>
#include <string>

#include <bursar/core/check.hpp>
#include <bursar/core/log.hpp>
#include <bursar/physical/driver_error.hpp>
#include <bursar/physical/extent_pool.hpp>

namespace bursar {
inline namespace v0 {

ExtentPool::ExtentPool(Driver& driver, DeviceId device, ExtentGate& gate)
    : driver_(driver),
      gate_(gate),
      device_(device),
      page_(driver.device_info(device).granularity),
      plain_(driver.device_info(device).capability == CapabilityLevel::no_vmm) {}

DriverCode ExtentPool::give_back(const Extent& extent) {
  return plain_ ? driver_.free_plain(DeviceAddress{extent.handle.value})
                : driver_.release(extent.handle);
}

ExtentPool::~ExtentPool() {
  std::size_t failed = 0;
  for (const std::unique_ptr<Extent>& extent : extents_) {
    if (give_back(*extent) != DriverCode::success) ++failed;
    gate_.refund(extent->domain, device_, extent->size);
  }
  if (failed != 0) {
    log(LogLevel::error,
        std::to_string(failed) + " extents could not be released when the allocator ended");
  }
}

result<Extent*> ExtentPool::create(const VmmLock& lock, PageCount pages, DomainId domain,
                                   ExtentProperties properties) {
  BURSAR_CHECK(1, lock.held() && pages.value > 0);
  const Bytes size = to_bytes(pages, page_);
  auto extent = std::make_unique<Extent>();
  if (extents_.size() == extents_.capacity()) extents_.reserve(extents_.size() * 2 + 16);
  spares_.reserve(extents_.capacity());  // so that keeping one spare never allocates

  result<ExtentReservation> paid = ExtentReservation::take(gate_, domain, device_, size);
  if (!paid) return paid.failure();
  ExtentHandle handle{};
  DeviceAddress address{};
  const DriverCode code = plain_ ? driver_.malloc_plain(device_, size, address)
                                 : driver_.create(device_, size, properties, handle);
  if (code != DriverCode::success) {
    return driver_error(code, DriverCall::create, device_, size);
  }
  paid->commit();

  extent->id = next_id_++;
  extent->handle = plain_ ? ExtentHandle{address.value} : handle;
  extent->mapped_at = address;
  extent->state = plain_ ? ExtentState::mapped : ExtentState::spare;
  extent->size = size;
  extent->pages = pages;
  extent->domain = domain;
  extent->index = extents_.size();
  extents_.push_back(std::move(extent));
  const std::uint64_t now = reserved_.fetch_add(size.count) + size.count;
  if (now > peak_.load()) peak_.store(now);  // only written under the VMM lock or by a reset
  // Not in spares_: the caller is about to use it. keep_spare() puts it there if that fails.
  return extents_.back().get();
}

Extent* ExtentPool::take_spare(const VmmLock& lock, PageCount most, DomainId domain) {
  const auto better = [most](const Extent* a, const Extent* b) {
    const auto rank = [most](const Extent* e) { return e->pages > most ? 0u : e->pages.value; };
    return rank(a) < rank(b);
  };
  const auto best = std::max_element(spares_.begin(), spares_.end(), better);
  if (best == spares_.end() || (*best)->pages > most) return nullptr;
  Extent* extent = *best;
  result<ExtentReservation> paid = reserve_charge(lock, *extent, domain);
  if (!paid) return nullptr;
  move_charge(lock, *extent, domain, std::move(*paid));
  *best = spares_.back();
  spares_.pop_back();
  spare_.fetch_sub(extent->size.count);
  return extent;
}

result<ExtentReservation> ExtentPool::reserve_charge(const VmmLock& lock, const Extent& extent,
                                                     DomainId domain) {
  BURSAR_CHECK(1, lock.held());
  const Bytes due = extent.domain == domain ? Bytes{} : extent.size;
  return ExtentReservation::take(gate_, domain, device_, due);
}

void ExtentPool::move_charge(const VmmLock& lock, Extent& extent, DomainId domain,
                             ExtentReservation paid) {
  BURSAR_CHECK(1, lock.held());
  paid.commit();
  if (extent.domain != domain) {
    gate_.refund(extent.domain, device_, extent.size);
    extent.unclean = true;
  }
  extent.domain = domain;
}

void ExtentPool::keep_spare(const VmmLock& lock, Extent& extent) {
  BURSAR_CHECK(1, lock.held() && extent.old_mappings == 0);
  extent.state = ExtentState::spare;
  extent.mapped_at = {};
  spares_.push_back(&extent);
  spare_.fetch_add(extent.size.count);
}

result<void> ExtentPool::release(const VmmLock& lock, Extent& extent) {
  BURSAR_CHECK(1, lock.held() && extent.old_mappings == 0);
  extent.mapped_at = {};
  if (const DriverCode code = give_back(extent); code != DriverCode::success) {
    quarantine(lock, extent);
    return driver_error(code, DriverCall::release, device_, extent.size);
  }
  forget(extent);
  return {};
}

Bytes ExtentPool::release_spare(const VmmLock& lock, Bytes bytes) {
  std::sort(spares_.begin(), spares_.end(),
            [](const Extent* a, const Extent* b) { return a->pages < b->pages; });
  Bytes given{};
  while (!spares_.empty() && given < bytes) {
    Extent* extent = spares_.back();
    spares_.pop_back();
    spare_.fetch_sub(extent->size.count);
    const Bytes size = extent->size;
    if (release(lock, *extent)) given += size;
  }
  return given;
}

void ExtentPool::quarantine(const VmmLock& lock, Extent& extent) {
  BURSAR_CHECK(1, lock.held() && extent.state != ExtentState::quarantined);
  extent.state = ExtentState::quarantined;
  quarantined_.fetch_add(extent.size.count);
}

std::vector<VaRange> ExtentPool::retry_quarantine(const VmmLock& lock) {
  std::vector<VaRange> freed;
  if (quarantined_.load() == 0) return freed;
  for (std::size_t i = extents_.size(); i-- > 0;) {
    Extent& extent = *extents_[i];
    if (extent.state != ExtentState::quarantined || extent.old_mappings != 0) continue;
    if (extent.mapped_at != DeviceAddress{}) {
      const VaRange mapping{extent.mapped_at, extent.size};
      freed.reserve(freed.size() + 1);
      if (driver_.unmap(mapping) != DriverCode::success) continue;
      freed.push_back(mapping);
      extent.mapped_at = {};
    }
    const Bytes size = extent.size;
    if (give_back(extent) != DriverCode::success) continue;
    quarantined_.fetch_sub(size.count);
    forget(extent);
  }
  BURSAR_CHECK(1, lock.held());
  return freed;
}

void ExtentPool::forget(Extent& extent) {
  gate_.refund(extent.domain, device_, extent.size);
  reserved_.fetch_sub(extent.size.count);
  const std::size_t at = extent.index;
  std::swap(extents_[at], extents_.back());
  extents_[at]->index = at;
  extents_.pop_back();
}

result<void> ExtentPool::validate(const VmmLock& lock) const {
  BURSAR_CHECK(1, lock.held());
  const auto broken = [this](const char* message) {
    return error{.kind = ErrorKind::driver_fault, .message = message, .device = device_};
  };
  Bytes reserved{};
  Bytes spare{};
  Bytes quarantined{};
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    const Extent& extent = *extents_[i];
    if (extent.index != i) return broken("extent_pool: an extent is not at its index");
    if (extent.size != to_bytes(extent.pages, page_)) return broken("extent_pool: size != pages");
    if ((extent.state == ExtentState::mapped) && extent.mapped_at == DeviceAddress{}) {
      return broken("extent_pool: a mapped extent has no address");
    }
    reserved += extent.size;
    if (extent.state == ExtentState::spare) spare += extent.size;
    if (extent.state == ExtentState::quarantined) quarantined += extent.size;
  }
  Bytes listed{};
  for (const Extent* extent : spares_) listed += extent->size;
  if (listed != spare || spare.count != spare_) return broken("extent_pool: spare bytes differ");
  if (reserved.count != reserved_) return broken("extent_pool: reserved bytes differ");
  if (quarantined.count != quarantined_) return broken("extent_pool: quarantined bytes differ");
  return {};
}

}  // namespace v0
}  // namespace bursar
