// SPDX-License-Identifier: Apache-2.0
// Extents, reservations and mappings, with the hardware's refusals.
#include "sim_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bursar {
inline namespace v0 {
namespace {

/// More than this a process never gets in all, as measured.
constexpr Bytes kAddressSpace{std::uint64_t{128} << 40};

/// The mapping at `address`, or else the next one above it.
template <typename Mappings>
auto first_at_or_above(Mappings& mappings, DeviceAddress address) {
  const auto above = mappings.upper_bound(address.value);
  if (above == mappings.begin()) return above;
  const auto before = std::prev(above);
  return before->first + before->second.size.count > address.value ? before : above;
}

}  // namespace

SimMemory::SimMemory(const SimOptions& options, SimCapacity& capacity, CallMeter& meter,
                     SimDetector* detector)
    : options_(options),
      capacity_(capacity),
      meter_(meter),
      detector_(detector),
      backing_(options.backed ? make_backed() : make_unbacked()) {}

SimMemory::~SimMemory() {
  for (const auto& [begin, size] : reservations_) {
    backing_->unreserve({DeviceAddress{begin}, size});
  }
  for (const auto& [begin, mapping] : mappings_) {
    if (mapping.plain) backing_->unreserve(plain_range(DeviceAddress{begin}, mapping.size));
  }
  for (const auto& [serial, physical] : physicals_) {
    backing_->destroy(physical->storage, physical->size);
  }
}

// -- extents ----------------------------------------------------------------------------------

SimMemory::Physical* SimMemory::make_physical(DeviceId device, Bytes size, bool shareable) {
  if (!capacity_.take(device, size)) return nullptr;
  const std::optional<SimStorage> storage = backing_->create(size, shareable);
  if (!storage) {
    capacity_.give(device, size);
    return nullptr;
  }
  auto physical = std::make_unique<Physical>();
  physical->serial = next_handle_;
  physical->device = device;
  physical->size = size;
  physical->shareable = shareable;
  physical->storage = *storage;
  extent_bytes_ += size;
  meter_.created(size);
  return physicals_.emplace(physical->serial, std::move(physical)).first->second.get();
}

ExtentHandle SimMemory::add_handle(Physical& physical) {
  const ExtentHandle handle{next_handle_++};
  handles_.emplace(handle.value, &physical);
  ++physical.handles;
  return handle;
}

void SimMemory::drop_if_unused(Physical& physical) {
  if (physical.handles > 0 || physical.mappings > 0) return;
  if (detector_ != nullptr) detector_->check_release(physical.uses, physical.serial);
  by_file_.erase(physical.file);
  backing_->destroy(physical.storage, physical.size);
  if (!physical.foreign) {
    capacity_.give(physical.device, physical.size);
    extent_bytes_ -= physical.size;
    meter_.released(physical.size);
  }
  physicals_.erase(physical.serial);
}

DriverCode SimMemory::create(DeviceId device, Bytes size, ExtentProperties properties,
                             ExtentHandle& out) {
  if (!valid_device(device)) return DriverCode::invalid_device;
  if (!is_page_multiple(size)) return DriverCode::invalid_value;
  Physical* physical = make_physical(device, size, properties.shareable);
  if (physical == nullptr) return DriverCode::out_of_memory;
  out = add_handle(*physical);
  return DriverCode::success;
}

DriverCode SimMemory::release(ExtentHandle extent) {
  const auto it = handles_.find(extent.value);
  if (it == handles_.end()) return DriverCode::invalid_value;
  Physical& physical = *it->second;
  handles_.erase(it);
  --physical.handles;
  drop_if_unused(physical);
  return DriverCode::success;
}

// -- addresses --------------------------------------------------------------------------------

DriverCode SimMemory::reserve(Bytes size, DeviceAddress hint, VaRange& out) {
  if (!is_page_multiple(size)) return DriverCode::invalid_value;
  if (size > options_.max_reservation || size > kAddressSpace - reserved_) {
    return DriverCode::out_of_memory;
  }
  const auto begin = backing_->reserve(size, options_.granularity, hint);
  if (!begin) return DriverCode::out_of_memory;
  reservations_.emplace(begin->value, size);
  reserved_ += size;
  out = VaRange{*begin, size};
  return DriverCode::success;
}

DriverCode SimMemory::unreserve(VaRange range) {
  const auto it = reservations_.find(range.begin.value);
  if (it == reservations_.end() || it->second != range.size || occupied(range)) {
    return DriverCode::invalid_value;
  }
  backing_->unreserve(range);
  reserved_ -= range.size;
  reservations_.erase(it);
  return DriverCode::success;
}

DriverCode SimMemory::map(VaRange range, ExtentHandle extent) {
  Physical* physical = find(extent);
  if (physical == nullptr || !is_page_multiple(range.size) ||
      !is_aligned(Bytes{range.begin.value}, options_.granularity)) {
    return DriverCode::invalid_value;
  }
  if (range.size < physical->size) return DriverCode::not_supported;  // a part of the extent
  if (range.size > physical->size || !inside_reservation(range) || occupied(range)) {
    return DriverCode::invalid_value;
  }
  if (options_.capability == CapabilityLevel::no_aliases && physical->mappings > 0) {
    return DriverCode::not_supported;
  }
  if (!backing_->map(range, physical->storage)) return DriverCode::out_of_memory;
  mappings_.emplace(range.begin.value, Mapping{range.size, physical, 0, false, {}});
  ++physical->mappings;
  return DriverCode::success;
}

DriverCode SimMemory::set_access(VaRange range, std::span<const DeviceId> devices) {
  if (range.size.count == 0 || devices.empty()) return DriverCode::invalid_value;
  std::uint64_t bits = 0;
  for (const DeviceId device : devices) {
    if (!valid_device(device)) return DriverCode::invalid_device;
    bits |= bit(device);
  }
  const auto first = mappings_.find(range.begin.value);
  auto last = first;
  DeviceAddress at = range.begin;
  for (; at < range.end(); ++last) {
    if (last == mappings_.end() || last->first != at.value || last->second.plain) {
      return DriverCode::invalid_value;
    }
    at = at + last->second.size;
  }
  if (at != range.end()) return DriverCode::invalid_value;
  if (!backing_->allow(range)) return DriverCode::out_of_memory;
  for (auto it = first; it != last; ++it) it->second.devices |= bits;
  return DriverCode::success;
}

DriverCode SimMemory::unmap(VaRange range) {
  const auto it = mappings_.find(range.begin.value);
  if (it == mappings_.end() || it->second.size != range.size || it->second.plain) {
    return DriverCode::invalid_value;
  }
  if (!backing_->unmap(range)) return DriverCode::out_of_memory;
  if (detector_ != nullptr) detector_->check_unmap(it->second.uses, range);
  Physical& physical = *it->second.physical;
  mappings_.erase(it);
  --physical.mappings;
  drop_if_unused(physical);
  return DriverCode::success;
}

// -- use --------------------------------------------------------------------------------------

bool SimMemory::accessible(DeviceId device, VaRange range) const {
  DeviceAddress at = range.begin;
  if (range.end() < at) return false;
  for (auto it = first_at_or_above(mappings_, at); at < range.end(); ++it) {
    if (it == mappings_.end() || it->first > at.value) return false;
    if ((it->second.devices & bit(device)) == 0) return false;
    at = DeviceAddress{it->first} + it->second.size;
  }
  return true;
}

void SimMemory::access(DeviceId device, VaRange range, std::uint64_t generation) {
  if (!accessible(device, range)) {
    detector_->report(
        Violation::Kind::access_unmapped,
        fmt::format("{} on stream {} was given {}, not all of which is memory device {} may use",
                    sim_work_text(generation), detector_->current_stream().value,
                    sim_range_text(range.begin.value, range.end().value), device.value));
  }
  const std::uint64_t end = range.end().value;
  auto it = first_at_or_above(mappings_, range.begin);
  for (; it != mappings_.end() && it->first < end; ++it) {
    Mapping& mapping = it->second;
    Physical& physical = *mapping.physical;
    const std::uint64_t from = std::max(it->first, range.begin.value) - it->first;
    const std::uint64_t to = std::min(it->first + mapping.size.count, end) - it->first;
    detector_->access(physical.history, {from, to}, generation, physical.serial);
    mapping.uses.add(detector_->current_work());
    physical.uses.add(detector_->current_work());
  }
}

// -- look-ups ---------------------------------------------------------------------------------

bool SimMemory::is_page_multiple(Bytes size) const {
  return size.count != 0 && is_aligned(size, options_.granularity);
}

bool SimMemory::valid_device(DeviceId device) const {
  return device.value >= 0 && device.value < options_.devices;
}

SimMemory::Physical* SimMemory::find(ExtentHandle extent) const {
  const auto it = handles_.find(extent.value);
  return it == handles_.end() ? nullptr : it->second;
}

bool SimMemory::occupied(VaRange range) const {
  const auto it = first_at_or_above(mappings_, range.begin);
  return it != mappings_.end() && it->first < range.end().value;
}

bool SimMemory::inside_reservation(VaRange range) const {
  auto it = reservations_.upper_bound(range.begin.value);
  if (it == reservations_.begin()) return false;
  --it;
  const std::uint64_t offset = range.begin.value - it->first;
  return offset < it->second.count && range.size.count <= it->second.count - offset;
}

Bytes SimMemory::extent_size(ExtentHandle extent) const {
  const Physical* physical = find(extent);
  return physical == nullptr ? Bytes{} : physical->size;
}

}  // namespace v0
}  // namespace bursar
