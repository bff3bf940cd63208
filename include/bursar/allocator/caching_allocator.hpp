// SPDX-License-Identifier: Apache-2.0
// CachingAllocator: device memory by the block, from extents that it caches and moves.
//
// One instance serves any number of devices, domains, streams and threads. A block is carved from
// idle memory if there is any; then idle extents are moved to where they fit; only then is a new
// extent created, and paid for first. Nothing ever waits for the GPU unless memory has run out.
//
// Stream order: a block belongs to its home stream, the one named at allocate. Memory freed on a
// stream is reusable there at once, elsewhere when a fence has passed. The library never waits on,
// nor synchronizes, a caller's stream.
//
// Thread-safety: every function may be called from any thread. During stream capture an allocation
// that needs more than cached memory is refused with `not_supported`.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <bursar/allocator/allocate_options.hpp>
#include <bursar/allocator/allocator_options.hpp>
#include <bursar/allocator/allocator_stats.hpp>
#include <bursar/allocator/snapshot.hpp>
#include <bursar/core/result.hpp>
#include <bursar/driver/driver.hpp>

namespace bursar {
inline namespace v0 {

class AllocatorState;

struct DomainOptions {
  std::string name;
  Bytes limit = Bytes::max();  ///< most bytes of extents it may hold on each device
};

class BURSAR_EXPORT CachingAllocator {
 public:
  /// Makes no driver call for memory yet. Throws Error(invalid_argument) for options that
  /// contradict each other or the devices.
  explicit CachingAllocator(std::shared_ptr<Driver> driver, const AllocatorOptions& options = {});
  /// Gives everything back. Precondition: no thread is inside a call, and no work still uses its
  /// memory; what `scrub` and `redzones` put on the streams of allocations is such work. Blocks
  /// still live become invalid. Redzones not compared yet are.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// A block of at least `bytes` bytes, usable in stream order on its home stream. Zero bytes:
  /// null. Throws OutOfMemory (over_budget, device_oom), Error (everything else). May wait up to
  /// `wait_limit` when memory has run out and GPU work holds what would serve.
  /// Budget: the domain pays for the extents it comes to hold.
  [[nodiscard]] void* allocate(std::size_t bytes, const AllocateOptions& options = {});
  /// The same, returning the error. An absurd size is device_oom (larger than the device) or
  /// invalid_argument (not representable); both leave all caches as they are.
  result<void*> try_allocate(std::size_t bytes, const AllocateOptions& options = {}) noexcept;

  /// Gives a block back, ordered on its home stream: the caller says that no other stream, but
  /// recorded ones, still uses it. Null is ignored. Throws Error(invalid_argument) for a pointer
  /// that is no live block, and changes nothing.
  void deallocate(void* block);
  /// Ordered on `stream` instead, a stream of the block's device, which takes the memory over. As
  /// with cudaFreeAsync, `stream` must be ordered after the allocation and all uses of the block.
  void deallocate(void* block, StreamRef stream);
  result<void> try_deallocate(void* block) noexcept;
  result<void> try_deallocate(void* block, StreamRef stream) noexcept;

  /// Work of `stream`, one of the block's device, uses the block too: after deallocate the memory
  /// stays pending until a fence taken at that stream's first call after it has passed.
  result<void> record_stream(void* block, StreamRef stream) noexcept;
  /// Resolves a handle once, so that later calls need not.
  result<StreamRef> stream(StreamHandle handle, DeviceId device = {}) noexcept;
  /// Required before a stream is destroyed: fences what it freed, so that others can have it.
  result<void> retire_stream(StreamRef stream, DeviceId device = {}) noexcept;

  /// Gives idle memory back to the driver until at most `target` bytes are reserved, as far as
  /// fences have passed; never waits for the GPU. Streams named here are fenced first: what they
  /// freed last can go as soon as it is done. Returns the bytes given back.
  Bytes trim(Bytes target = Bytes{0}, DeviceId device = {},
             std::span<const StreamRef> streams = {}) noexcept;

  /// Bytes usable at `block`, at least what was asked. 0 for null or a pointer that is no block.
  std::size_t usable_size(const void* block) const noexcept;
  /// True when `pointer` lies inside a live block (not only at its begin).
  bool owns(const void* pointer) const noexcept;

  /// A new domain. Ids are never reused.
  result<DomainId> create_domain(DomainOptions options);
  /// No new allocations; what is idle goes back to the device as far as its work is done, the rest
  /// later. Live blocks stay valid and charged until they are freed.
  result<void> close_domain(DomainId domain) noexcept;
  /// A lower limit than is held now refuses growth; it takes nothing away.
  result<void> set_limit(DomainId domain, Bytes limit) noexcept;

  AllocatorStats stats(DeviceId device = {}) const;
  AllocatorStats domain_stats(DomainId domain, DeviceId device = {}) const;
  /// Every range, extent and block at one instant.
  Snapshot snapshot(DeviceId device = {}) const;
  void reset_peaks() noexcept;

  /// Proves every invariant by a full walk; the error names the first that does not hold.
  result<void> validate() const;

  Driver& driver() noexcept;

 private:
  std::unique_ptr<AllocatorState> state_;
};

}  // namespace v0
}  // namespace bursar
