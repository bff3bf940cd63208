// SPDX-License-Identifier: Apache-2.0
// SimMemory: extents, reservations and mappings of the simulated driver, and the rules that the
// hardware has for them.
//
// Every function refuses what the real driver refuses, with its code, and then changes nothing. An
// extent's memory lives until it has neither a handle nor a mapping; only then do its bytes return.
// Used under the driver's lock.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include <bursar/driver/sim_driver.hpp>

#include "sim_backing.hpp"
#include "sim_capacity.hpp"
#include "sim_detector.hpp"

namespace bursar {
inline namespace v0 {

class SimMemory {
 public:
  /// `detector` may be null. All references must outlive this.
  SimMemory(const SimOptions& options, SimCapacity& capacity, CallMeter& meter,
            SimDetector* detector);
  ~SimMemory();

  DriverCode create(DeviceId device, Bytes size, ExtentProperties properties, ExtentHandle& out);
  DriverCode release(ExtentHandle extent);
  DriverCode export_handle(ExtentHandle extent, int& fd_out);
  DriverCode import_handle(DeviceId device, int fd, Bytes size, ExtentHandle& out);

  DriverCode reserve(Bytes size, DeviceAddress hint, VaRange& out);
  DriverCode unreserve(VaRange range);
  DriverCode map(VaRange range, ExtentHandle extent);
  DriverCode set_access(VaRange range, std::span<const DeviceId> devices);
  DriverCode unmap(VaRange range);

  DriverCode malloc_plain(DeviceId device, Bytes size, DeviceAddress& out);
  DriverCode free_plain(DeviceAddress address);

  /// Whether all of `range` is memory that work on `device` may use.
  bool accessible(DeviceId device, VaRange range) const;
  /// Tells the detector that its current work, on `device`, touches `range`.
  void access(DeviceId device, VaRange range, std::uint64_t generation);
  /// Writes for real where memory is real. Precondition: accessible().
  void fill(VaRange range, std::uint8_t value) { backing_->fill(range, value); }
  /// False where memory is not real. Precondition: accessible().
  bool read(DeviceAddress at, std::span<std::byte> out) { return backing_->read(at, out); }

  /// 0 for an unknown handle.
  Bytes extent_size(ExtentHandle extent) const;
  struct Plain {
    DeviceId device;
    Bytes size;
  };
  /// What malloc_plain gave at `address`.
  std::optional<Plain> plain(DeviceAddress address) const;
  /// Calls `visit(size)` for each mapping that begins inside `range`.
  template <typename Visit>
  void each_mapping(VaRange range, Visit&& visit) const {
    const auto end = mappings_.lower_bound(range.end().value);
    for (auto it = mappings_.lower_bound(range.begin.value); it != end; ++it) {
      visit(it->second.size);
    }
  }

  Bytes extent_bytes() const { return extent_bytes_; }
  std::size_t mapping_count() const { return mappings_.size() - plain_count_; }
  Bytes reserved_addresses() const { return reserved_; }

 private:
  /// What is equal for all descriptors of one file: its device and inode.
  using FileKey = std::pair<std::uint64_t, std::uint64_t>;

  /// The memory behind one or more handles.
  struct Physical {
    std::uint64_t serial = 0;  ///< its first handle
    DeviceId device;
    Bytes size;
    bool shareable = false;
    bool foreign = false;  ///< another process created it and pays for it
    std::uint32_t handles = 0;
    std::uint32_t mappings = 0;
    SimStorage storage;
    FileKey file{};  ///< set once a descriptor of it was given out or taken in
    SimAccessHistory history;
    SimLastUses uses;
  };
  struct Mapping {
    Bytes size;
    Physical* physical = nullptr;
    std::uint64_t devices = 0;  ///< a bit for each device that has access
    bool plain = false;         ///< made by malloc_plain
    SimLastUses uses;
  };
  using Mappings = std::map<std::uint64_t, Mapping>;

  static std::uint64_t bit(DeviceId device) { return std::uint64_t{1} << device.value; }
  bool is_page_multiple(Bytes size) const;
  bool valid_device(DeviceId device) const;
  Physical* find(ExtentHandle extent) const;
  bool occupied(VaRange range) const;
  bool inside_reservation(VaRange range) const;
  Physical* make_physical(DeviceId device, Bytes size, bool shareable);
  /// The addresses that a malloc_plain of `size` bytes takes up.
  VaRange plain_range(DeviceAddress address, Bytes size) const;
  ExtentHandle add_handle(Physical& physical);
  void drop_if_unused(Physical& physical);

  const SimOptions& options_;
  SimCapacity& capacity_;
  CallMeter& meter_;
  SimDetector* detector_;
  std::unique_ptr<SimBacking> backing_;
  std::uint64_t next_handle_ = 1;
  std::unordered_map<std::uint64_t, Physical*> handles_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Physical>> physicals_;  ///< by serial
  std::map<FileKey, Physical*> by_file_;
  std::map<std::uint64_t, Bytes> reservations_;
  Mappings mappings_;
  std::size_t plain_count_ = 0;
  Bytes extent_bytes_;
  Bytes reserved_;
};

}  // namespace v0
}  // namespace bursar
