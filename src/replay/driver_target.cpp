// SPDX-License-Identifier: Apache-2.0
// Thin by intent: what is judged is the allocator, called as its users call it.
#include "driver_target.hpp"

#include <utility>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/physical/driver_error.hpp>

#include "segment_cache.hpp"

namespace bursar {
inline namespace v0 {
namespace {

AllocatorOptions options_or_throw() {
  result<AllocatorOptions> options = options_from_environment();
  if (!options) throw Error(options.failure());
  return *options;
}

class BursarTarget final : public ReplayTarget {
 public:
  BursarTarget(std::shared_ptr<Driver> driver, std::optional<Bytes> limit)
      : allocator_(std::move(driver), options_or_throw()) {
    if (!limit) return;
    if (const auto set = allocator_.set_limit(kDefaultDomain, *limit); !set) {
      throw Error(set.failure());
    }
  }

  const char* name() const noexcept override { return "bursar"; }
  result<StreamRef> resolve(StreamHandle stream) noexcept override {
    return allocator_.stream(stream);
  }
  result<void> retire(StreamRef stream) noexcept override {
    return allocator_.retire_stream(stream);
  }
  result<void*> allocate(Bytes size, StreamRef stream) noexcept override {
    AllocateOptions options;
    options.stream = stream;
    return allocator_.try_allocate(size.count, options);
  }
  result<void> deallocate(void* block, StreamRef stream) noexcept override {
    return allocator_.try_deallocate(block, stream);
  }
  result<void> validate() const override { return allocator_.validate(); }
  std::optional<Snapshot> snapshot() const override { return allocator_.snapshot(); }
  CallMeter& meter() noexcept override { return allocator_.driver().meter(); }

 private:
  CachingAllocator allocator_;
};

class SegmentCacheTarget final : public ReplayTarget {
 public:
  explicit SegmentCacheTarget(std::shared_ptr<Driver> driver)
      : driver_(std::move(driver)), cache_(driver_) {}

  const char* name() const noexcept override { return "segment_cache"; }
  result<StreamRef> resolve(StreamHandle stream) noexcept override {
    StreamRef ref(stream);
    const DriverCode code = driver_->stream_id(DeviceId{}, stream, ref.id);
    if (code != DriverCode::success) {
      return driver_error(code, DriverCall::stream_id, DeviceId{});
    }
    return ref;
  }
  result<void> retire(StreamRef) noexcept override { return {}; }
  result<void*> allocate(Bytes size, StreamRef stream) noexcept override {
    return cache_.allocate(size, stream.id);
  }
  result<void> deallocate(void* block, StreamRef) noexcept override {
    return cache_.deallocate(block);
  }
  result<void> validate() const override { return cache_.validate(); }
  CallMeter& meter() noexcept override { return driver_->meter(); }

 private:
  std::shared_ptr<Driver> driver_;
  SegmentCache cache_;
};

}  // namespace

std::unique_ptr<ReplayTarget> make_bursar_target(std::shared_ptr<Driver> driver,
                                                 std::optional<Bytes> limit) {
  return std::make_unique<BursarTarget>(std::move(driver), limit);
}

std::unique_ptr<ReplayTarget> make_segment_cache_target(std::shared_ptr<Driver> driver) {
  return std::make_unique<SegmentCacheTarget>(std::move(driver));
}

}  // namespace v0
}  // namespace bursar
