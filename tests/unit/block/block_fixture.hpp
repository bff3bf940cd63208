// SPDX-License-Identifier: Apache-2.0
// A BlockMap with one range, and backing pretended page by page: no driver call maps anything.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <bursar/block/block_map.hpp>
#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {

using namespace bursar::literals;

inline constexpr Bytes kPage = 2_MiB;

/// A map over `pages` vacant pages.
class BlockFixture {
 public:
  explicit BlockFixture(std::uint32_t pages = 16) : extents_(pages) {
    auto range = AddressRange::reserve(driver_, {}, kPage, kPage * pages, kPage * pages);
    range_ = range->get();
    map.add_range(std::move(*range));
  }
  DeviceAddress at(Bytes offset) const { return range_->where().begin + offset; }
  VaRange span(Bytes offset, Bytes size) const { return {at(offset), size}; }

  /// Sets the vacant bytes aside and pretends memory behind them.
  Block* back(Bytes offset, Bytes size) {
    Block* block = map.gather(map.find(at(offset)), span(offset, size));
    const std::uint64_t first = offset / kPage;
    for (std::uint64_t page = first; page < first + size / kPage; ++page) {
      range_->set_extent({at(kPage * page), kPage}, &extents_[page]);
    }
    return block;
  }
  Block* idle(Bytes offset, Bytes size, FencePoint freed = {}) {
    return map.make_idle(back(offset, size), freed);
  }
  Block* live(Bytes offset, Bytes size, StreamSlot home = 1) {
    Block* block = back(offset, size);
    map.make_live(block, size, home);
    return block;
  }
  AddressRange& range() { return *range_; }
  /// (offset, size, state) of each block in order.
  using Piece = std::pair<std::pair<std::uint64_t, std::uint64_t>, BlockState>;
  std::vector<Piece> pieces() const {
    std::vector<Piece> all;
    map.for_each([&](const Block& b) {
      all.push_back({{(b.begin - at(0_B)).count >> 20, b.size.count >> 20}, b.state});
    });
    return all;
  }

 private:
  SimDriver driver_;
  BlockStore store_;
  std::vector<Extent> extents_;
  AddressRange* range_ = nullptr;

 public:
  BlockMap map{store_, DomainId{3}, DeviceId{}};
};

}  // namespace bursar::test
