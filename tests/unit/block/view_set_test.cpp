// SPDX-License-Identifier: Apache-2.0
// ViewSet: which view a request finds, and what an extent that leaves takes with it.
#include <bursar/block/view_set.hpp>

#include <deque>

#include <bursar/driver/sim_driver.hpp>

#include "support/catch.hpp"

namespace bursar::test {

using namespace bursar::literals;

namespace {

constexpr Bytes kPage = 2_MiB;
constexpr StreamSlot kSlot = 1;

/// A zone whose first pages are backed by extents of two pages each, and a zone of view addresses.
class ViewFixture {
 public:
  ViewFixture() {
    for (BlockMap* map : {&home, &addresses}) {
      auto range = AddressRange::reserve(driver_, {}, kPage, 64_MiB, 64_MiB);
      map->add_range(std::move(*range));
    }
    for (int i = 0; i < 6; ++i) {
      Block* block =
          home.cut(home.find(at(4_MiB * extents.size())), at(4_MiB * extents.size()), 4_MiB);
      extents.push_back({});
      extents.back().size = 4_MiB;
      extents.back().mapped_at = block->begin;
      block->range->set_extent(block->where(), &extents.back());
      home.make_live(block, 4_MiB, kSlot);
    }
  }
  DeviceAddress at(Bytes offset) const { return home.first(0)->begin + offset; }
  void free(std::size_t extent, FencePoint point = {}) {
    home.make_idle(home.find(extents[extent].mapped_at), point);
  }
  View& view(std::initializer_list<std::size_t> of, Bytes made_for) {
    std::vector<ViewPiece> pieces;
    VaRange where{addresses.vacant().lowest_fit(4_MiB * of.size())->begin, {}};
    for (const std::size_t i : of) {
      Block* address = addresses.cut(addresses.find(where.end()), where.end(), 4_MiB);
      pieces.push_back({&extents[i], address->where(), address});
      where.size += 4_MiB;
    }
    return views.add(where, made_for, std::move(pieces));
  }

 private:
  SimDriver driver_;
  BlockStore store_;

 public:
  Zones homes{store_, DomainId{}, DeviceId{}};
  BlockMap& home = homes.large;
  BlockMap addresses{store_, DomainId{}, DeviceId{}};
  std::deque<Extent> extents;
  ViewSet views;
};

}  // namespace

TEST_CASE("a view is found when all memory under the request is idle", "[block][view_set]") {
  ViewFixture f;
  View& view = f.view({1, 4}, 8_MiB);
  CHECK_FALSE(f.views.find(f.homes, kSlot, 8_MiB));
  f.free(1);
  CHECK_FALSE(f.views.find(f.homes, kSlot, 8_MiB));
  f.free(4);
  const auto place = f.views.find(f.homes, kSlot, 8_MiB);
  REQUIRE(place);
  CHECK(place->view == &view);
  CHECK(place->begin == view.where.begin);
}

TEST_CASE("memory that another stream freed and no fence has passed is not found",
          "[block][view_set]") {
  ViewFixture f;
  f.view({1, 4}, 8_MiB);
  f.free(1, {kSlot, 7});
  f.free(4, {2, 7});
  CHECK_FALSE(f.views.find(f.homes, kSlot, 8_MiB));
  f.home.release_batch(2, 7);
  CHECK(f.views.find(f.homes, kSlot, 8_MiB));
}

TEST_CASE("a request smaller than the view takes its first free run", "[block][view_set]") {
  ViewFixture f;
  View& view = f.view({0, 2, 4}, 12_MiB);
  f.free(2);
  f.free(4);
  const auto place = f.views.find(f.homes, kSlot, 6_MiB);
  REQUIRE(place);
  CHECK(place->begin == view.where.begin + 4_MiB);
  const std::vector<Block*> parts = ViewSet::take(f.homes, *place, 6_MiB);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0]->where() == VaRange{f.at(8_MiB), 4_MiB});
  CHECK(parts[1]->where() == VaRange{f.at(16_MiB), 2_MiB});
}

TEST_CASE("views made for the size come first, then the oldest", "[block][view_set]") {
  ViewFixture f;
  View& large = f.view({0, 1, 2}, 12_MiB);
  View& exact = f.view({0, 2}, 8_MiB);
  for (const std::size_t extent : {0, 1, 2}) f.free(extent);
  CHECK(f.views.find(f.homes, kSlot, 8_MiB)->view == &exact);
  CHECK(f.views.find(f.homes, kSlot, 7_MiB)->view == &large);
}

TEST_CASE("an extent that leaves is named at each address and found no more", "[block][view_set]") {
  ViewFixture f;
  View& first = f.view({0, 1}, 8_MiB);
  View& second = f.view({1, 2}, 8_MiB);
  const DeviceAddress in_first = first.where.begin + 4_MiB;
  const DeviceAddress in_second = second.where.begin;
  for (const std::size_t extent : {0, 1, 2}) f.free(extent);
  const std::vector<Block*> left = f.views.detach(f.extents[1]);
  REQUIRE(left.size() == 2);
  CHECK(left[0]->begin == in_first);
  CHECK(left[1]->begin == in_second);
  CHECK_FALSE(f.views.find(f.homes, kSlot, 8_MiB));
  CHECK(f.views.find(f.homes, kSlot, 4_MiB));
  CHECK(f.views.count() == 2);
  f.views.detach(f.extents[0]);
  f.views.detach(f.extents[2]);
  CHECK(f.views.count() == 0);
}

TEST_CASE("the oldest view that is free and whose work is done is dropped", "[block][view_set]") {
  ViewFixture f;
  View& leased = f.view({0, 1}, 8_MiB);
  View& busy = f.view({1, 2}, 8_MiB);
  f.view({2, 3}, 8_MiB);
  leased.leases = 1;
  busy.leases = 1;
  ViewSet::give_back(busy, {kSlot, 5});
  const auto done = [](const FencePoint& point) { return point.batch < 5; };
  const std::vector<ViewPiece> pieces = f.views.drop_oldest(done);
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].extent == &f.extents[2]);
  CHECK(pieces[1].extent == &f.extents[3]);
  CHECK(f.views.drop_oldest(done).empty());
  CHECK(f.views.count() == 2);
}

}  // namespace bursar::test
