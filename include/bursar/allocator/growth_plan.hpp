// SPDX-License-Identifier: Apache-2.0
// GrowthPlan: what must be done with the driver so that a request can be placed.
//
// A miss is served in three steps, because no driver call may happen under the heap lock: *plan*
// (choose the place and the extents, set both aside as `moving` blocks), *run* (driver calls under
// the VMM lock), *commit* (tell the blocks). Between them other threads go on; what is set aside
// cannot be taken by anyone else, and whatever fails, commit puts every piece back into a state
// that is true.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <bursar/block/block.hpp>
#include <bursar/core/result.hpp>
#include <bursar/driver/driver_types.hpp>
#include <bursar/physical/extent.hpp>

namespace bursar {
inline namespace v0 {

struct Arena;

/// An idle extent chosen to serve elsewhere.
struct MoveSource {
  Extent* extent = nullptr;
  Block* block = nullptr;  ///< its place until now, set aside: exactly the extent's addresses
  FencePoint freed;        ///< when the work that used it is done
  bool passed = false;     ///< it is done
};

/// One extent at one place. After the run, `outcome` says what became of it.
struct GrowthStep {
  enum class Outcome {
    untouched,  ///< not begun, or undone: source and target are as they were
    done,       ///< the extent is mapped at the target
    unmapped,   ///< the source was unmapped but not mapped: the extent is spare now
    stuck,      ///< the target cannot be used: an undo failed there
  };
  VaRange target{};
  Extent* extent = nullptr;  ///< of the source; or what a fresh step came to use
  Block* source = nullptr;   ///< null: fresh, from a spare or a new extent
  FencePoint freed;
  /// Where the source's extent is still mapped by views, which it has left: one flag each, true
  /// once that mapping is gone.
  std::vector<std::pair<Block*, bool>> views;
  bool alias = false;    ///< the old mapping stays until `freed` has passed
  bool cleared = false;  ///< on the plan's `clear_on`: not for others until that is done
  Outcome outcome = Outcome::untouched;
};

struct GrowthPlan {
  Arena* arena = nullptr;
  Block* site = nullptr;  ///< moving; the block's addresses, rounded out to the pages needed
  VaRange place{};        ///< where the block will be
  FencePoint site_freed;  ///< when old work in the site's memory is done
  std::vector<GrowthStep> steps;
  ExtentProperties properties;  ///< of extents to be created
  bool dedicated = false;       ///< one new extent of its own, no spare, no sources
  /// Set where unclean extents are to be cleared, in the order of this stream, as they arrive.
  std::optional<StreamHandle> clear_on;

  Bytes cleared_bytes() const {
    Bytes sum{};
    for (const GrowthStep& step : steps) {
      if (step.cleared) sum += step.target.size;
    }
    return sum;
  }
  Bytes fresh_bytes() const {
    Bytes sum{};
    for (const GrowthStep& step : steps) {
      if (step.source == nullptr) sum += step.target.size;
    }
    return sum;
  }
};

}  // namespace v0
}  // namespace bursar
