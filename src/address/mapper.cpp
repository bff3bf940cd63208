// SPDX-License-Identifier: Apache-2.0
// Transactional mapping.
#include <bursar/address/mapper.hpp>

#include <bursar/core/check.hpp>
#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {

Mapper::Mapper(Driver& driver, ExtentPool& pool, std::vector<DeviceId> devices)
    : driver_(driver), pool_(pool), devices_(std::move(devices)) {}

Mapper::Outcome Mapper::try_map(const Extent& extent, DeviceAddress address,
                                const StreamHandle* clear_on, error& why) {
  const VaRange where{address, extent.size};
  if (const DriverCode code = driver_.map(where, extent.handle); code != DriverCode::success) {
    why = driver_error(code, DriverCall::map, pool_.device(), extent.size);
    return Outcome::undone;
  }
  DriverCall call = DriverCall::set_access;
  DriverCode code = driver_.set_access(where, devices_);
  if (code == DriverCode::success && clear_on != nullptr) {
    call = DriverCall::memset;
    code = driver_.memset(pool_.device(), address, 0, extent.size, *clear_on);
  }
  if (code == DriverCode::success) return Outcome::done;
  why = driver_error(code, call, pool_.device(), extent.size);
  return driver_.unmap(where) == DriverCode::success ? Outcome::undone : Outcome::stuck;
}

result<void> Mapper::map(const VmmLock& lock, Extent& extent, DeviceAddress address,
                         const StreamHandle* clear_on) {
  BURSAR_CHECK(1, lock.held() && extent.mapped_at == DeviceAddress{});
  error why;
  if (!extent.unclean) clear_on = nullptr;
  switch (try_map(extent, address, clear_on, why)) {
    case Outcome::done:
      extent.unclean = extent.unclean && clear_on == nullptr;
      extent.mapped_at = address;
      extent.state = ExtentState::mapped;
      return {};
    case Outcome::stuck:
      extent.mapped_at = address;
      pool_.quarantine(lock, extent);
      return why;
    case Outcome::undone: break;
  }
  return why;
}

result<void> Mapper::map_view(const VmmLock& lock, Extent& extent, DeviceAddress address,
                              bool& stuck) {
  BURSAR_CHECK(1, lock.held() && extent.state == ExtentState::mapped);
  error why;
  const Outcome outcome = try_map(extent, address, nullptr, why);
  stuck = outcome == Outcome::stuck;
  if (outcome != Outcome::undone) ++extent.old_mappings;
  if (outcome != Outcome::done) return why;
  return {};
}

result<void> Mapper::map_again(const VmmLock& lock, Extent& extent, DeviceAddress address,
                               bool& stuck, const StreamHandle* clear_on) {
  BURSAR_CHECK(1, lock.held() && extent.state == ExtentState::mapped);
  error why;
  const Outcome outcome = try_map(extent, address, clear_on, why);
  stuck = outcome == Outcome::stuck;
  if (outcome != Outcome::undone) ++extent.old_mappings;  // the other of the two is "old" now
  if (outcome != Outcome::done) return why;
  extent.mapped_at = address;
  return {};
}

result<void> Mapper::unmap(const VmmLock& lock, Extent& extent) {
  BURSAR_CHECK(1, lock.held() && extent.state == ExtentState::mapped);
  const DriverCode code = driver_.unmap({extent.mapped_at, extent.size});
  if (code != DriverCode::success) {
    return driver_error(code, DriverCall::unmap, pool_.device(), extent.size);
  }
  extent.mapped_at = {};
  extent.state = ExtentState::spare;
  return {};
}

result<void> Mapper::unmap_old(const VmmLock& lock, Extent& extent, DeviceAddress address) {
  BURSAR_CHECK(1, lock.held() && extent.old_mappings > 0);
  const DriverCode code = driver_.unmap({address, extent.size});
  if (code != DriverCode::success) {
    return driver_error(code, DriverCall::unmap, pool_.device(), extent.size);
  }
  --extent.old_mappings;
  return {};
}

}  // namespace v0
}  // namespace bursar
