// SPDX-License-Identifier: Apache-2.0
// Reservations that step down when refused, and their page tables.
#include <algorithm>
#include <bit>
#include <string>

#include <bursar/address/address_range.hpp>
#include <bursar/core/check.hpp>
#include <bursar/core/lock_rank.hpp>
#include <bursar/core/log.hpp>
#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {

AddressRange::AddressRange(Driver& driver, VaRange where, Bytes page, bool owned)
    : driver_(driver),
      where_(where),
      page_(page),
      page_shift_(static_cast<unsigned>(std::countr_zero(page.count))),
      owned_(owned) {
  const std::size_t pages = (where.size.count + page.count - 1) >> page_shift_;
  chunks_.resize((pages + kChunk - 1) / kChunk);
}

result<std::unique_ptr<AddressRange>> AddressRange::reserve(Driver& driver, DeviceId device,
                                                            Bytes page, Bytes wanted, Bytes least) {
  BURSAR_CHECK(1, no_lock_held_from(LockRank::heap));
  wanted = std::max(wanted, least);
  for (Bytes size = wanted;;) {
    VaRange where{};
    const DriverCode code = driver.reserve(size, DeviceAddress{}, where);
    if (code == DriverCode::success) {
      return std::unique_ptr<AddressRange>(new AddressRange(driver, where, page, true));
    }
    if (size == least || is_sticky(code) || code == DriverCode::not_initialized) {
      error e = driver_error(code, DriverCall::reserve, device, size);
      if (e.kind == ErrorKind::driver_fault) e.kind = ErrorKind::va_exhausted;
      return e;
    }
    size = std::max(least, round_down(size / 2, page));
  }
}

std::unique_ptr<AddressRange> AddressRange::over(Driver& driver, VaRange where, Bytes page) {
  return std::unique_ptr<AddressRange>(new AddressRange(driver, where, page, false));
}

AddressRange::~AddressRange() {
  if (!owned_) return;
  if (const DriverCode code = driver_.unreserve(where_); code != DriverCode::success) {
    log(LogLevel::error, "a range of addresses could not be given back, driver code " +
                             std::to_string(static_cast<int>(code)));
  }
}

PageSlot& AddressRange::slot(DeviceAddress address) {
  const std::size_t page = page_index(address);
  std::unique_ptr<PageSlot[]>& chunk = chunks_[page / kChunk];
  if (!chunk) chunk = std::make_unique<PageSlot[]>(kChunk);
  return chunk[page % kChunk];
}

const PageSlot* AddressRange::find_slot(DeviceAddress address) const noexcept {
  const std::size_t page = page_index(address);
  const std::unique_ptr<PageSlot[]>& chunk = chunks_[page / kChunk];
  return chunk ? &chunk[page % kChunk] : nullptr;
}

void AddressRange::set_extent(VaRange range, Extent* extent) {
  for (DeviceAddress a = range.begin; a < range.end(); a = a + page_) slot(a).extent = extent;
}

Bytes AddressRange::backed_bytes(VaRange range) const noexcept {
  Bytes backed{};
  for (DeviceAddress at = range.begin; at < range.end();) {
    const std::size_t page = page_index(at);
    const PageSlot* chunk = chunks_[page / kChunk].get();
    // A chunk that was never used is passed over as a whole.
    const std::size_t next = chunk != nullptr ? page + 1 : (page / kChunk + 1) * kChunk;
    const DeviceAddress end = std::min(where_.begin + page_ * next, range.end());
    if (chunk != nullptr && chunk[page % kChunk].extent != nullptr) backed += end - at;
    at = end;
  }
  return backed;
}

Bytes AddressRange::metadata() const noexcept {
  const auto used = std::count_if(chunks_.begin(), chunks_.end(),
                                  [](const auto& chunk) { return chunk != nullptr; });
  return Bytes{sizeof *this + chunks_.size() * sizeof chunks_[0] +
               static_cast<std::uint64_t>(used) * kChunk * sizeof(PageSlot)};
}

}  // namespace v0
}  // namespace bursar
