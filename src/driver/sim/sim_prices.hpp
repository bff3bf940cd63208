// SPDX-License-Identifier: Apache-2.0
// SimPrices: what each driver call costs on the simulated device's clock.
//
// One table by extent size, measured on an NVIDIA H200 (driver 580, CUDA 13.0), median of each
// call. Between two rows the price is interpolated, below the first row it is that row's, above the
// last it goes on as between the last two. How many extents are alive changes nothing.
#pragma once

#include <span>

#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

struct SimPriceRow {
  Bytes size;
  Duration create, map, set_access, unmap, release, malloc_plain, free_plain;
};

/// The measured rows, by ascending size.
std::span<const SimPriceRow> sim_price_rows() noexcept;

class SimPrices {
 public:
  /// With `free_of_charge` every price is zero.
  explicit SimPrices(bool free_of_charge) : free_(free_of_charge) {}

  /// A call whose price depends on `size`: `column` is its member of SimPriceRow.
  Duration sized(Duration SimPriceRow::*column, Bytes size) const noexcept;
  /// A call whose price does not.
  Duration flat(DriverCall call) const noexcept;
  /// A create or malloc_plain that finds too little memory.
  Duration refused_create() const noexcept;
  Duration refused_malloc_plain() const noexcept;

 private:
  bool free_;
};

}  // namespace v0
}  // namespace bursar
