// SPDX-License-Identifier: Apache-2.0
// What helps to find memory errors, and clearing: where in its block the caller's bytes lie, what
// is written there before the caller has them, and what is compared after.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/block/block_size.hpp>
#include <bursar/core/check.hpp>
#include <bursar/core/log.hpp>
#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {

namespace {
constexpr Bytes kGuardedAlignment{16};  ///< passthrough: a few bytes too far must be seen
}  // namespace

/// Sizes the block and places the caller's bytes in it; false where the device cannot do
/// passthrough. A shareable block always begins with its extent, where an importer finds it.
bool DeviceHeap::lay_out(Request& request) const {
  if (options_.passthrough) {
    request.guarded = true;
    request.alignment = std::max(request.alignment, kGuardedAlignment);
    request.size = round_up(request.requested, page_);
    if (!request.shareable && request.alignment <= page_) {
      request.front = round_down(request.size - request.requested, request.alignment);
    }
    return !plain_;
  }
  request.alignment = std::max(request.alignment, kBlockGranule);
  Bytes around{};
  if (options_.redzones) {
    if (!request.shareable) request.front = std::max(request.alignment, kRedzone);
    around = request.front + kRedzone;
  }
  request.size = block_size(request.requested + around);
  return true;
}

/// The bytes of a live block that are its caller's: those asked for and, where nobody watches what
/// lies behind them, those that rounding added.
VaRange DeviceHeap::usable(const Block& block) const {
  const bool watched = options_.passthrough || options_.redzones;
  return {block.data(), watched ? block.requested : block.end() - block.data()};
}

/// When new memory may serve other streams: at once or, where it is being cleared on the request's
/// stream, when that is done. While one stream has it all, idle memory is of one kind, so that
/// neighbors merge.
FencePoint DeviceHeap::fresh_point(const Request& request, Bytes cleared) {
  if (cleared > Bytes{}) return streams_.note_free(request.slot, cleared);
  return streams_.count() == 1 ? FencePoint{request.slot, 0} : FencePoint{};
}

// -- before the caller has it ----------------------------------------------------------------

/// Writes, in the order of the request's stream, what a block must hold before its caller has it.
/// Where that fails the block is given back. The heap lock is dropped meanwhile.
result<void*> DeviceHeap::prepare(HeapLock& lock, void* block, const Request& request) {
  if (!writes_ && !request.shareable) return block;
  Block* live = live_.find(to_address(block));
  const Redzones zones = redzones_of(*live);
  VaRange clear{live->end(), {}};
  if (options_.scrub == Scrub::always) clear = live->where();
  // A shareable extent is exported whole, and new memory is not promised to be zero.
  if (clear.size == Bytes{} && request.shareable) {
    clear = {zones.data.end(), live->end() - zones.data.end()};
  }
  lock.unlock();
  bool zoned = false;
  const DriverCode code = write_before_use(zones, clear, request.stream, zoned);
  lock.lock();
  live = live_.find(to_address(block));
  if (live == nullptr) {
    return error{.kind = ErrorKind::invalid_argument,
                 .message =
                     "another thread freed the block before its caller had it: a pointer "
                     "was used after its free",
                 .device = device_};
  }
  live->zoned = zoned;
  if (code == DriverCode::success) return block;
  free_block(lock, live, streams_.note_free(request.slot, live->size));
  return note_lost(driver_error(code, DriverCall::memset, device_, clear.size));
}

DriverCode DeviceHeap::write_before_use(const Redzones& zones, VaRange clear, StreamRef stream,
                                        bool& zoned) {
  DriverCode code = DriverCode::success;
  if (clear.size > Bytes{})
    code = driver_.memset(device_, clear.begin, 0, clear.size, stream.handle);
  if (code != DriverCode::success || !options_.redzones) return code;
  // Zones that a capture fills would not be filled before its graph runs.
  bool capturing = false;
  code = driver_.stream_capturing(device_, stream.handle, capturing);
  if (code != DriverCode::success || capturing) return code;
  code = fill_redzones(driver_, device_, zones, stream.handle);
  zoned = code == DriverCode::success;
  return code;
}

// -- after the caller has given it back ------------------------------------------------------

/// What check_redzones() must know of a block while it holds no lock.
struct DeviceHeap::ZoneReport {
  Redzones zones;
  StreamId freed_on = kNoStream;
  DomainId domain{};
};

/// A freed block is pending until its work is done and its redzones were compared.
void DeviceHeap::keep_unchecked(Block* block, FencePoint freed) {
  if (block->state == BlockState::live) make_pending(block);
  block->recorded.reset();
  block->freed = freed;
  want_fence(freed.slot);
  unchecked_.push_back({block, freed});
}

/// Compares the redzones of freed blocks whose work is done, which then go on to be idle or
/// released; true when there were any. The heap lock is dropped meanwhile.
bool DeviceHeap::check_redzones(HeapLock& lock) {
  std::vector<Doomed> due;
  std::erase_if(unchecked_, [&](const Doomed& unchecked) {
    if (!streams_.passed(unchecked.freed)) return false;
    due.push_back(unchecked);
    return true;
  });
  if (due.empty()) return false;
  std::vector<ZoneReport> reports;
  reports.reserve(due.size());
  for (const Doomed& one : due) {
    ++streams_.at(one.freed.slot).pins;
    reports.push_back(
        {redzones_of(*one.block), streams_.at(one.freed.slot).id, one.block->map->domain()});
  }
  lock.unlock();
  std::vector<bool> damaged;
  damaged.reserve(reports.size());
  for (const ZoneReport& report : reports) damaged.push_back(inspect(report));
  lock.lock();
  for (std::size_t i = 0; i < due.size(); ++i) {
    --streams_.at(due[i].freed.slot).pins;
    if (damaged[i]) ++arenas_[reports[i].domain.value]->damaged_blocks;
    due[i].block->zoned = false;
    finish_free(due[i].block, due[i].freed);
  }
  return true;
}

/// Reads and compares one block's redzones, and logs what is wrong; true when they were written to.
bool DeviceHeap::inspect(const ZoneReport& report) const noexcept {
  std::string damage;
  const DriverCode code = inspect_redzones(driver_, device_, report.zones, damage);
  if (code == DriverCode::success && damage.empty()) return false;
  const VaRange data = report.zones.data;
  const std::string block = fmt::format(
      "block {:#x} of {} bytes (device {}, domain {}, freed on stream {})", data.begin.value,
      data.size.count, device_.value, report.domain.value, report.freed_on.value);
  if (code != DriverCode::success) {
    log(LogLevel::warning, fmt::format("redzones: {} could not be read back, driver code {}", block,
                                       static_cast<int>(code)));
    return false;
  }
  log(LogLevel::error, fmt::format("redzones: {}: {} were overwritten", block, damage));
  return true;
}

/// When the heap ends all work is done, so what is not compared yet is, live blocks included.
void DeviceHeap::check_last_redzones() {
  const auto last = [this](const Block& block) {
    if (!block.zoned) return;
    (void)inspect({redzones_of(block), streams_.at(block.freed.slot).id, block.map->domain()});
  };
  live_.for_each(last);
  for (StreamSlot slot = 1; slot < streams_.end_slot(); ++slot) {
    if (!streams_.in_use(slot)) continue;
    for (const Block* block : streams_.at(slot).waiting) last(*block);
  }
  for (const Doomed& unchecked : unchecked_) last(*unchecked.block);
}

}  // namespace v0
}  // namespace bursar
