// SPDX-License-Identifier: Apache-2.0
// Redzones: bytes before and behind what a caller got, filled when it gets them and compared after
// it has given them back. A wrong byte was written by somebody who had no business there.
//
//   block->begin      data()               data() + requested          block->end()
//        | not looked at | zone before | the caller's bytes | zone behind | not looked at |
//
// What rounding adds to the request belongs to the zone behind, so that one byte too far is seen.
#pragma once

#include <string>

#include <bursar/block/block.hpp>
#include <bursar/driver/driver.hpp>

namespace bursar {
inline namespace v0 {

/// Least size of a zone; one behind the data is larger by what rounding adds, up to as much again.
inline constexpr Bytes kRedzone{512};

/// Where a block's zones are: what is needed to look at them without any lock.
struct Redzones {
  VaRange data{};    ///< the caller's bytes
  VaRange before{};  ///< empty where the data begins with its block
  VaRange behind{};
};

/// Precondition: the block is live or pending.
BURSAR_EXPORT Redzones redzones_of(const Block& block);

/// Fills the zones, in the order of `stream`.
BURSAR_EXPORT DriverCode fill_redzones(Driver& driver, DeviceId device, const Redzones& zones,
                                       StreamHandle stream);

/// Reads the zones and says in `damage` which bytes are wrong, as "bytes 1 to 4 past its end" and
/// "bytes 8 to 1 before its begin"; empty when none is. Blocks for two small copies.
/// Precondition: all work that used the block is known to be done.
BURSAR_EXPORT DriverCode inspect_redzones(Driver& driver, DeviceId device, const Redzones& zones,
                                          std::string& damage);

}  // namespace v0
}  // namespace bursar
