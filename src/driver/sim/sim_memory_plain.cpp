// SPDX-License-Identifier: Apache-2.0
// SimMemory's memory without VMM, and extents that travel between processes.
#include <fcntl.h>
#include <sys/stat.h>

#include "sim_memory.hpp"

namespace bursar {
inline namespace v0 {
namespace {

/// What cudaMalloc aligns to; several small ones share a page there, so only this much is charged.
constexpr Bytes kPlainUnit{512};

}  // namespace

// -- memory without VMM -------------------------------------------------------------------------

VaRange SimMemory::plain_range(DeviceAddress address, Bytes size) const {
  return {address, round_up(size, options_.granularity)};
}

DriverCode SimMemory::malloc_plain(DeviceId device, Bytes size, DeviceAddress& out) {
  if (!valid_device(device)) return DriverCode::invalid_device;
  if (size.count == 0) return DriverCode::invalid_value;
  if (size > options_.capacity) return DriverCode::out_of_memory;
  const Bytes rounded = round_up(size, kPlainUnit);
  Physical* physical = make_physical(device, rounded, false);
  if (physical == nullptr) return DriverCode::out_of_memory;
  ++next_handle_;
  const VaRange room = plain_range({}, rounded);
  const auto begin = backing_->reserve(room.size, options_.granularity, {});
  const bool mapped = begin && backing_->map({*begin, rounded}, physical->storage) &&
                      backing_->allow({*begin, rounded});
  if (!mapped) {
    if (begin) backing_->unreserve({*begin, room.size});
    drop_if_unused(*physical);
    return DriverCode::out_of_memory;
  }
  mappings_.emplace(begin->value, Mapping{rounded, physical, bit(device), true, {}});
  ++physical->mappings;
  ++plain_count_;
  out = *begin;
  return DriverCode::success;
}

DriverCode SimMemory::free_plain(DeviceAddress address) {
  const auto it = mappings_.find(address.value);
  if (it == mappings_.end() || !it->second.plain) return DriverCode::invalid_value;
  backing_->unreserve(plain_range(address, it->second.size));
  Physical& physical = *it->second.physical;
  mappings_.erase(it);
  --plain_count_;
  --physical.mappings;
  drop_if_unused(physical);
  return DriverCode::success;
}

std::optional<SimMemory::Plain> SimMemory::plain(DeviceAddress address) const {
  const auto it = mappings_.find(address.value);
  if (it == mappings_.end() || !it->second.plain) return std::nullopt;
  return Plain{it->second.physical->device, it->second.size};
}

// -- other processes ----------------------------------------------------------------------------

DriverCode SimMemory::export_handle(ExtentHandle extent, int& fd_out) {
  Physical* physical = find(extent);
  if (physical == nullptr || !physical->shareable) return DriverCode::invalid_value;
  struct stat file {};
  const int fd = ::fcntl(physical->storage.fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0 || ::fstat(fd, &file) != 0) return DriverCode::unknown;
  physical->file = {file.st_dev, file.st_ino};
  by_file_[physical->file] = physical;
  fd_out = fd;
  return DriverCode::success;
}

DriverCode SimMemory::import_handle(DeviceId device, int fd, Bytes size, ExtentHandle& out) {
  if (!valid_device(device)) return DriverCode::invalid_device;
  struct stat file {};
  // Only memfds have seals: any other descriptor is not an extent.
  const bool is_extent = ::fcntl(fd, F_GET_SEALS) >= 0 && ::fstat(fd, &file) == 0;
  if (!is_extent || static_cast<std::uint64_t>(file.st_size) != size.count ||
      !is_page_multiple(size)) {
    return DriverCode::invalid_value;
  }
  const FileKey key{file.st_dev, file.st_ino};
  Physical*& known = by_file_[key];
  if (known == nullptr) {
    const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
      by_file_.erase(key);
      return DriverCode::unknown;
    }
    auto physical = std::make_unique<Physical>();
    physical->serial = next_handle_;
    physical->device = device;
    physical->size = size;
    physical->shareable = true;
    physical->foreign = true;
    physical->storage = SimStorage{own, 0, true};
    physical->file = key;
    known = physical.get();
    physicals_.emplace(physical->serial, std::move(physical));
  }
  out = add_handle(*known);
  return DriverCode::success;
}

}  // namespace v0
}  // namespace bursar
