// SPDX-License-Identifier: Apache-2.0
// AddressRange: a reservation of virtual addresses and what is mapped at each of its pages.
//
// Addresses are cheap (64 TiB in one call) but not endless (128 TiB in a process), and some
// platforms refuse even 32 GiB. So a range is asked for generously and stepped down when refused,
// and addresses inside it are recycled for ever. The page table is filled in chunks on first use:
// a large reservation costs no host memory until it is lived in.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <bursar/core/result.hpp>
#include <bursar/driver/driver.hpp>
#include <bursar/physical/extent.hpp>

namespace bursar {
inline namespace v0 {

struct Block;  // declared only: address/ never looks inside

/// What the range knows of one page.
struct PageSlot {
  Extent* extent = nullptr;      ///< the extent that backs it; null: none
  Block* first_start = nullptr;  ///< the lowest block that begins in this page
};

/// Owns a reservation: given back by the destructor. Precondition of destruction: nothing is
/// mapped. Guarded by the device's heap lock.
class BURSAR_EXPORT AddressRange {
 public:
  /// Reserves `wanted` bytes, or half as often as it is refused, but never less than `least`.
  /// Both are multiples of `page`. va_exhausted when even that is refused. Calls the driver: no
  /// lock of rank heap may be held.
  static result<std::unique_ptr<AddressRange>> reserve(Driver& driver, DeviceId device, Bytes page,
                                                       Bytes wanted, Bytes least);
  /// A range over memory that lies there already (level no_vmm): nothing to give back.
  static std::unique_ptr<AddressRange> over(Driver& driver, VaRange where, Bytes page);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  VaRange where() const noexcept { return where_; }
  Bytes page() const noexcept { return page_; }

  /// Where the page that holds `address` begins.
  DeviceAddress page_begin(DeviceAddress address) const noexcept {
    return where_.begin + round_down(address - where_.begin, page_);
  }

  /// The slot of the page that holds `address`, made when missing.
  PageSlot& slot(DeviceAddress address);
  /// The same without making one; null where no page of its chunk was ever used.
  const PageSlot* find_slot(DeviceAddress address) const noexcept;
  Extent* extent_at(DeviceAddress address) const noexcept {
    const PageSlot* slot = find_slot(address);
    return slot == nullptr ? nullptr : slot->extent;
  }
  /// Writes `extent` (null: none) into the slots of all pages of `range`.
  void set_extent(VaRange range, Extent* extent);

  /// Bytes of pages in `range` that are backed.
  Bytes backed_bytes(VaRange range) const noexcept;
  Bytes metadata() const noexcept;

 private:
  static constexpr std::size_t kChunk = 512;  // pages in one chunk of the table

  AddressRange(Driver& driver, VaRange where, Bytes page, bool owned);
  std::size_t page_index(DeviceAddress a) const { return (a - where_.begin).count >> page_shift_; }

  Driver& driver_;
  VaRange where_;
  Bytes page_;
  unsigned page_shift_;
  bool owned_;
  std::vector<std::unique_ptr<PageSlot[]>> chunks_;
};

}  // namespace v0
}  // namespace bursar
