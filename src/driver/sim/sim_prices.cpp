// SPDX-License-Identifier: Apache-2.0
// What each driver call costs, as measured on an H200.
#include "sim_prices.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bursar {
inline namespace v0 {
namespace {

using namespace literals;

constexpr Duration us(double microseconds) {
  // std::llround is not constexpr, and no price is negative.
  // NOLINTNEXTLINE(bugprone-incorrect-roundings)
  return Duration{static_cast<std::int64_t>(microseconds * 1000 + 0.5)};
}

constexpr std::array kRows{
    //          size       create   map      access   unmap   release    malloc   free
    SimPriceRow{2_MiB, us(13), us(1.2), us(28), us(18), us(14), us(48), us(39)},
    SimPriceRow{32_MiB, us(13), us(1.3), us(30), us(18), us(41), us(56), us(70)},
    SimPriceRow{64_MiB, us(34), us(1.3), us(30), us(18), us(53), us(77), us(77)},
    SimPriceRow{128_MiB, us(17), us(1.5), us(31), us(18), us(81), us(63), us(113)},
    SimPriceRow{256_MiB, us(22), us(1.6), us(35), us(27), us(159), us(100), us(196)},
    SimPriceRow{1024_MiB, us(53), us(2.4), us(82), us(36), us(633), us(308), us(627)},
    SimPriceRow{4096_MiB, us(456), us(5.3), us(211), us(63), us(2796), us(719), us(2783)},
};

}  // namespace

std::span<const SimPriceRow> sim_price_rows() noexcept { return kRows; }

Duration SimPrices::sized(Duration SimPriceRow::*column, Bytes size) const noexcept {
  if (free_) return Duration{};
  if (size <= kRows.front().size) return kRows.front().*column;
  // The row that ends the interval; the last one also serves everything larger.
  const auto* high = std::find_if(kRows.begin() + 1, kRows.end() - 1,
                                  [&](const SimPriceRow& row) { return size <= row.size; });
  const auto* low = high - 1;
  const double share = static_cast<double>((size - low->size).count) /
                       static_cast<double>((high->size - low->size).count);
  const double from = static_cast<double>((low->*column).ns);
  const double to = static_cast<double>((high->*column).ns);
  return Duration{std::llround(from + (to - from) * share)};
}

Duration SimPrices::flat(DriverCall call) const noexcept {
  if (free_) return Duration{};
  switch (call) {
    case DriverCall::reserve: return us(3);
    case DriverCall::unreserve: return us(3);        // not measured: as reserve
    case DriverCall::event_create: return us(0.5);   // not measured
    case DriverCall::event_destroy: return us(0.5);  // not measured
    case DriverCall::event_record: return us(0.23);
    case DriverCall::event_query: return us(0.25);
    case DriverCall::stream_wait: return us(0.2);
    case DriverCall::stream_id: return us(0.024);
    case DriverCall::stream_capturing: return us(0.022);
    case DriverCall::memory_info: return us(6.5);
    case DriverCall::export_handle: return us(31);
    case DriverCall::import_handle: return us(31);
    case DriverCall::memset: return us(2);      // not measured: the host's part of a launch
    case DriverCall::trim_pools: return us(1);  // not measured: nothing is held in pools here
    case DriverCall::read: return us(10);       // not measured: a small copy and the wait for it
    case DriverCall::create:
    case DriverCall::map:
    case DriverCall::set_access:
    case DriverCall::unmap:
    case DriverCall::release: break;  // priced by size
  }
  return Duration{};
}

Duration SimPrices::refused_create() const noexcept { return free_ ? Duration{} : us(3500); }
Duration SimPrices::refused_malloc_plain() const noexcept { return free_ ? Duration{} : us(6800); }

}  // namespace v0
}  // namespace bursar
