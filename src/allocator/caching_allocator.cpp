// SPDX-License-Identifier: Apache-2.0
// The public face: finds the device, throws what `try_` returns.
#include <bursar/allocator/caching_allocator.hpp>

#include <optional>
#include <vector>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/allocator/domain_table.hpp>
#include <bursar/allocator/out_of_memory.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

namespace {

constexpr error invalid(const char* message) {
  error e;
  e.kind = ErrorKind::invalid_argument;
  e.message = message;
  return e;
}

[[noreturn]] void raise(const error& e) { throw Error(e); }

}  // namespace

class AllocatorState {
 public:
  AllocatorState(std::shared_ptr<Driver> driver, const AllocatorOptions& chosen)
      : driver_(std::move(driver)), options(chosen), domains(driver_->device_count()) {
    for (const DeviceId peer : options.peers) {
      if (peer.value < 0 || peer.value >= driver_->device_count()) {
        raise(invalid("peers names a device that does not exist"));
      }
    }
    for (int d = 0; d < driver_->device_count(); ++d) {
      if (options.max_extent < driver_->device_info(DeviceId{d}).granularity) {
        raise(invalid("max_extent must be at least the device's page"));
      }
      heaps.push_back(std::make_unique<DeviceHeap>(*driver_, DeviceId{d}, options, domains));
    }
  }

  Driver& driver() { return *driver_; }
  /// Null where there is no such device.
  DeviceHeap* heap(DeviceId device) const {
    const bool known = device.value >= 0 && static_cast<std::size_t>(device.value) < heaps.size();
    return known ? heaps[static_cast<std::size_t>(device.value)].get() : nullptr;
  }
  /// At check levels 2 and 3 every public call proves the state it leaves behind.
  void prove() const {
    if constexpr (kCheckLevel >= 2) {
      for (const auto& heap : heaps) {
        const result<void> good = heap->validate();
        if (!good) check_failed(good.failure().message, __FILE__, __LINE__);
      }
    }
  }

 private:
  std::shared_ptr<Driver> driver_;

 public:
  const AllocatorOptions options;
  DomainTable domains;
  std::vector<std::unique_ptr<DeviceHeap>> heaps;  // by device
};

CachingAllocator::CachingAllocator(std::shared_ptr<Driver> driver,
                                   const AllocatorOptions& options) {
  if (driver == nullptr) raise(invalid("a driver is needed"));
  if (result<void> good = check_options(options); !good) raise(good.failure());
  state_ = std::make_unique<AllocatorState>(std::move(driver), options);
}

CachingAllocator::~CachingAllocator() = default;

Driver& CachingAllocator::driver() noexcept { return state_->driver(); }

/// From the calling thread's cache, or null.
static inline void* try_thread_cache(const AllocatorState& state, std::size_t bytes,
                                     const AllocateOptions& options) noexcept {
  DeviceHeap* heap = state.heap(options.device);
  if (heap == nullptr) return nullptr;
  void* block = heap->try_thread_cache(Bytes{bytes}, options);
  if (block != nullptr) state.prove();
  return block;
}

// What misses the thread's cache is out of line: its frame would cost the hit as much as the hit.

[[gnu::noinline]] static void* allocate_or_throw(const AllocatorState& state, std::size_t bytes,
                                                 const AllocateOptions& options) {
  if (bytes == 0) return nullptr;
  DeviceHeap* heap = state.heap(options.device);
  if (heap == nullptr) raise(invalid("there is no such device"));
  OomReport report;
  result<void*> block = heap->allocate(Bytes{bytes}, options, &report);
  state.prove();
  if (block) return *block;
  report.cause = block.failure();  // also where nothing had to be reported
  if (block.failure().retryable()) throw OutOfMemory(report);
  raise(block.failure());
}

void* CachingAllocator::allocate(std::size_t bytes, const AllocateOptions& options) {
  if (void* block = try_thread_cache(*state_, bytes, options)) return block;
  return allocate_or_throw(*state_, bytes, options);
}

result<void*> CachingAllocator::try_allocate(std::size_t bytes,
                                             const AllocateOptions& options) noexcept {
  if (void* block = try_thread_cache(*state_, bytes, options)) return block;
  if (bytes == 0) return static_cast<void*>(nullptr);
  DeviceHeap* heap = state_->heap(options.device);
  if (heap == nullptr) return invalid("there is no such device");
  result<void*> block = heap->allocate(Bytes{bytes}, options, nullptr);
  state_->prove();
  return block;
}

namespace {

/// True when the calling thread's cache of some heap has taken the block.
inline bool kept(const AllocatorState& state, const void* block, const StreamRef* stream) {
  for (const auto& heap : state.heaps) {
    if (!heap->try_keep(block, stream)) continue;
    state.prove();
    return true;
  }
  return false;
}

/// Asks each heap until one knows the pointer.
template <class Ask>
result<void> ask_heaps(const AllocatorState& state, const void* pointer, Ask&& ask) {
  if (pointer == nullptr) return {};
  for (const auto& heap : state.heaps) {
    if (std::optional<result<void>> answer = ask(*heap)) {
      state.prove();
      return *answer;
    }
  }
  return invalid("not the begin of a live block: never allocated here, or freed twice");
}

}  // namespace

result<void> CachingAllocator::try_deallocate(void* block) noexcept {
  if (kept(*state_, block, nullptr)) return {};
  return ask_heaps(*state_, block, [&](DeviceHeap& h) { return h.deallocate(block, nullptr); });
}

result<void> CachingAllocator::try_deallocate(void* block, StreamRef stream) noexcept {
  if (kept(*state_, block, &stream)) return {};
  return ask_heaps(*state_, block, [&](DeviceHeap& h) { return h.deallocate(block, &stream); });
}

[[gnu::noinline]] static void deallocate_or_throw(CachingAllocator& allocator, void* block,
                                                  const StreamRef* stream) {
  const result<void> done = stream == nullptr ? allocator.try_deallocate(block)
                                              : allocator.try_deallocate(block, *stream);
  if (!done) raise(done.failure());
}

void CachingAllocator::deallocate(void* block) {
  if (!kept(*state_, block, nullptr)) deallocate_or_throw(*this, block, nullptr);
}

void CachingAllocator::deallocate(void* block, StreamRef stream) {
  if (!kept(*state_, block, &stream)) deallocate_or_throw(*this, block, &stream);
}

result<void> CachingAllocator::record_stream(void* block, StreamRef stream) noexcept {
  return ask_heaps(*state_, block, [&](DeviceHeap& h) { return h.record_stream(block, stream); });
}

result<StreamRef> CachingAllocator::stream(StreamHandle handle, DeviceId device) noexcept {
  DeviceHeap* heap = state_->heap(device);
  if (heap == nullptr) return invalid("there is no such device");
  return heap->resolve(StreamRef{handle});
}

result<void> CachingAllocator::retire_stream(StreamRef stream, DeviceId device) noexcept {
  DeviceHeap* heap = state_->heap(device);
  if (heap == nullptr) return invalid("there is no such device");
  result<void> retired = heap->retire_stream(stream);
  state_->prove();
  return retired;
}

Bytes CachingAllocator::trim(Bytes target, DeviceId device,
                             std::span<const StreamRef> streams) noexcept {
  DeviceHeap* heap = state_->heap(device);
  if (heap == nullptr) return {};
  const Bytes given = heap->trim(target, streams);
  state_->prove();
  return given;
}

std::size_t CachingAllocator::usable_size(const void* block) const noexcept {
  for (const auto& heap : state_->heaps) {
    if (const std::optional<Bytes> size = heap->usable_size(block)) return size->count;
  }
  return 0;
}

bool CachingAllocator::owns(const void* pointer) const noexcept {
  for (const auto& heap : state_->heaps) {
    if (heap->owns(pointer)) return true;
  }
  return false;
}

result<DomainId> CachingAllocator::create_domain(DomainOptions options) {
  return state_->domains.create(std::move(options.name), options.limit);
}

result<void> CachingAllocator::close_domain(DomainId domain) noexcept {
  if (domain == kDefaultDomain) return invalid("the default domain cannot be closed");
  if (!state_->domains.open(domain)) return invalid("the domain is not known or was closed");
  state_->domains.close(domain);
  for (const auto& heap : state_->heaps) heap->close_domain(domain);
  state_->prove();
  return {};
}

result<void> CachingAllocator::set_limit(DomainId domain, Bytes limit) noexcept {
  if (!state_->domains.open(domain)) return invalid("the domain is not known or was closed");
  state_->domains.set_limit(domain, limit);
  return {};
}

AllocatorStats CachingAllocator::stats(DeviceId device) const {
  const DeviceHeap* heap = state_->heap(device);
  if (heap == nullptr) raise(invalid("there is no such device"));
  return heap->stats(std::nullopt);
}

AllocatorStats CachingAllocator::domain_stats(DomainId domain, DeviceId device) const {
  const DeviceHeap* heap = state_->heap(device);
  if (heap == nullptr) raise(invalid("there is no such device"));
  if (!state_->domains.known(domain)) raise(invalid("there is no such domain"));
  return heap->stats(domain);
}

Snapshot CachingAllocator::snapshot(DeviceId device) const {
  const DeviceHeap* heap = state_->heap(device);
  if (heap == nullptr) raise(invalid("there is no such device"));
  return heap->snapshot();
}

void CachingAllocator::reset_peaks() noexcept {
  for (const auto& heap : state_->heaps) heap->reset_peaks();
}

result<void> CachingAllocator::validate() const {
  for (const auto& heap : state_->heaps) {
    if (result<void> good = heap->validate(); !good) return good;
  }
  return {};
}

}  // namespace v0
}  // namespace bursar
