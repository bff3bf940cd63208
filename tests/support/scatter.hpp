// SPDX-License-Identifier: Apache-2.0
// Scatter: how to leave idle memory so that a block of some size can only be had by moving or
// stitching: holes smaller than the block, each with a live block after it, in extents of one page.
#pragma once

#include <bursar/allocator/allocator_options.hpp>

namespace bursar::test {

/// By what means idle memory comes to serve elsewhere.
enum class Way {
  move,    ///< an extent gets a new home; what all devices do that can map
  stitch,  ///< extents are mapped side by side a second time
};
constexpr const char* to_string(Way way) { return way == Way::move ? "move" : "stitch"; }

struct Scatter {
  Bytes block{};  ///< to be asked for
  Bytes hole{};   ///< idle, `holes` of them for each block
  unsigned holes = 0;
  Bytes separator{};     ///< live, after each hole
  unsigned extents = 0;  ///< that one block must get hold of
  AllocatorOptions options;
};

/// For blocks of 2 MiB (one page), or of four holes of at least a page.
inline Scatter scatter(Way way, Bytes block) {
  constexpr Bytes kPage{2u << 20};
  Scatter s;
  s.block = block;
  s.hole = block / 4;
  s.holes = 4;
  s.separator = kPage * 2;
  s.extents = static_cast<unsigned>(block / kPage);
  s.options.growth_divisor = s.options.extent_share = 1'000'000;
  s.options.guard = s.options.wide_guard = s.options.map_price = 0;
  if (way == Way::move) {
    s.options.stitch_limit = Bytes::max();
    s.options.small_limit = kPage * 2;  // smaller blocks live in a zone that has no pages yet
  }
  if (block > kPage) return s;
  if (way == Way::move) {
    s.hole = kPage * 2;
    s.holes = 1;
  } else {  // an idle end and an idle begin of two extents
    s.hole = kPage / 2;
    s.holes = 2;
    s.extents = 2;
    s.options.small_limit = s.hole;  // so that the holes are in the zone of large blocks
  }
  return s;
}

}  // namespace bursar::test
