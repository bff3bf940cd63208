// SPDX-License-Identifier: Apache-2.0
// SimBacking: what lies behind the addresses the simulated driver gives out.
//
// Unbacked, addresses are numbers that never come back, so a stale one is always noticed. Backed,
// they are real: extents live in memfds and mappings are MAP_SHARED, so that two mappings of one
// extent show the same bytes and another process can map what it was sent.
//
// Two implementations, both used under the driver's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

/// The memory of one extent: a part of a file. `fd` -1: none yet.
struct SimStorage {
  int fd = -1;
  std::uint64_t offset = 0;
  bool own_file = false;  ///< the file holds this extent alone and is closed with it
};

class SimBacking {
 public:
  virtual ~SimBacking() = default;

  /// Storage for an extent; one with a file of its own can be sent to other processes.
  virtual std::optional<SimStorage> create(Bytes size, bool own_file) = 0;
  virtual void destroy(const SimStorage& storage, Bytes size) = 0;

  /// Addresses, aligned to `alignment`; those at `hint` when that is not 0 and they are free.
  virtual std::optional<DeviceAddress> reserve(Bytes size, Bytes alignment, DeviceAddress hint) = 0;
  virtual void unreserve(VaRange range) = 0;
  virtual bool map(VaRange range, const SimStorage& storage) = 0;
  virtual bool allow(VaRange range) = 0;
  virtual bool unmap(VaRange range) = 0;
  /// Writes `value` into mapped and allowed memory.
  virtual void fill(VaRange range, std::uint8_t value) = 0;
  /// Reads mapped and allowed memory; false where there is none behind the addresses.
  virtual bool read(DeviceAddress at, std::span<std::byte> out) = 0;
};

std::unique_ptr<SimBacking> make_unbacked();
std::unique_ptr<SimBacking> make_backed();

/// A new memfd of `size` bytes, close-on-exec; -1 when the system has none to give.
int make_memfd(Bytes size);

}  // namespace v0
}  // namespace bursar
