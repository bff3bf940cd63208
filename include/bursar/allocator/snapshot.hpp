// SPDX-License-Identifier: Apache-2.0
// Snapshot: every range, extent and block of one device at one instant, for pictures and for tests.
#pragma once

#include <cstdint>
#include <vector>

#include <bursar/block/block_state.hpp>
#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

struct SnapshotBlock {
  VaRange range{};
  Bytes requested{};  ///< 0 unless live; of a block in a view, what lies here
  BlockState state = BlockState::vacant;
  StreamId stream = kNoStream;  ///< home or freeing stream; kNoStream: usable by any
  DomainId domain{};
};

struct SnapshotExtent {
  std::uint64_t id = 0;  ///< unique in the allocator's life
  Bytes size{};
  DeviceAddress mapped_at{};  ///< 0: not mapped (spare or quarantined)
  DomainId domain{};
};

struct Snapshot {
  std::vector<VaRange> ranges;          ///< by address
  std::vector<SnapshotExtent> extents;  ///< by id
  std::vector<SnapshotBlock> blocks;    ///< by address; cover the ranges without a gap
};

}  // namespace v0
}  // namespace bursar
