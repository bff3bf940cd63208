// SPDX-License-Identifier: Apache-2.0
// The suite that every kind of device must pass: a CachingAllocator over a simulated device, at
// each capability level and with one device or two. Tests use the last device.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/allocator/out_of_memory.hpp>
#include <bursar/driver/sim_driver.hpp>

#include "unit/allocator/printing.hpp"

namespace bursar::test {

using namespace bursar::literals;

struct Shape {
  CapabilityLevel level = CapabilityLevel::full;
  int devices = 1;
  bool backed = false;  ///< memory is real: tests read and write it
};

/// Runs the test case once for each kind of device.
inline Shape any_shape() {
  return GENERATE(Shape{CapabilityLevel::full, 1}, Shape{CapabilityLevel::full, 2},
                  Shape{CapabilityLevel::no_aliases, 1}, Shape{CapabilityLevel::no_aliases, 2},
                  Shape{CapabilityLevel::no_vmm, 1}, Shape{CapabilityLevel::no_vmm, 2});
}
/// The same for devices that can map.
inline Shape any_vmm_shape() {
  return GENERATE(Shape{CapabilityLevel::full, 1}, Shape{CapabilityLevel::full, 2},
                  Shape{CapabilityLevel::no_aliases, 1});
}

inline SimOptions sim_options(Shape shape, Bytes capacity) {
  SimOptions options;
  options.devices = shape.devices;
  options.capacity = capacity;
  options.capability = shape.level;
  options.backed = shape.backed;
  options.detector = true;
  return options;
}

/// A device whose new memory is not zero, as nothing promises it to be. Needs real memory.
class DirtyDriver final : public SimDriver {
 public:
  static constexpr unsigned char kDirt = 0xEE;
  using SimDriver::SimDriver;

  DriverCode set_access(VaRange range, std::span<const DeviceId> devices) noexcept override {
    const DriverCode code = SimDriver::set_access(range, devices);
    if (code == DriverCode::success && is_new(range)) {
      std::memset(to_pointer(range.begin), kDirt, range.size.count);
    }
    return code;
  }
  DriverCode create(DeviceId device, Bytes size, ExtentProperties properties,
                    ExtentHandle& out) noexcept override {
    const DriverCode code = SimDriver::create(device, size, properties, out);
    if (code == DriverCode::success) new_ = size;
    return code;
  }
  DriverCode malloc_plain(DeviceId device, Bytes size, DeviceAddress& out) noexcept override {
    const DriverCode code = SimDriver::malloc_plain(device, size, out);
    if (code == DriverCode::success) std::memset(to_pointer(out), kDirt, size.count);
    return code;
  }

 private:
  bool is_new(VaRange range) { return std::exchange(new_, Bytes{}) == range.size; }

  Bytes new_{};  ///< size of the extent created last, until it is mapped
};

/// The bytes of a block on a device whose memory is real.
inline unsigned char* bytes_of(void* block) { return static_cast<unsigned char*>(block); }
inline bool all_are(const void* from, std::size_t count, unsigned char value) {
  const auto* bytes = static_cast<const unsigned char*>(from);
  return std::all_of(bytes, bytes + count, [&](unsigned char byte) { return byte == value; });
}

/// requested <= live <= reserved, and the parts are the whole.
inline bool adds_up(const AllocatorStats& s) {
  return s.requested <= s.live && s.live <= s.reserved &&
         s.reserved == s.live + s.idle + s.pending + s.spare + s.slack + s.quarantine;
}

template <class T>
ErrorKind kind_of(const result<T>& r) {
  REQUIRE_FALSE(r.ok());
  return r.failure().kind;
}

/// Every miss is served by moving extents, none by stitching: what devices without aliases do, and
/// all do for blocks too small to be stitched.
inline AllocatorOptions moving() {
  AllocatorOptions options;
  options.max_extent = 32_MiB;
  options.extent_share = 8;
  options.stitch_limit = Bytes::max();
  options.small_limit = 1_MiB;
  options.fence_bytes = 2_MiB;
  return options;
}

class AllocatorFixture {
 public:
  explicit AllocatorFixture(Shape shape = {}, AllocatorOptions options = moving(),
                            Bytes capacity = 256_MiB)
      : AllocatorFixture(std::make_shared<SimDriver>(sim_options(shape, capacity)), options) {}
  AllocatorFixture(std::shared_ptr<SimDriver> given, const AllocatorOptions& options)
      : driver(std::move(given)), device{driver->device_count() - 1}, allocator(driver, options) {}

  AllocateOptions on(StreamHandle stream, DomainId domain = kDefaultDomain) const {
    AllocateOptions options;
    options.stream = ref(stream);
    options.domain = domain;
    options.device = device;
    return options;
  }
  /// From now on streams are named by what they resolve to, as they must be during a capture.
  void resolve_streams() {
    for (const StreamHandle stream : {a, b}) {
      resolved_.push_back(*allocator.stream(stream, device));
    }
  }
  StreamRef ref(StreamHandle stream) const {
    for (const StreamRef& known : resolved_) {
      if (known.handle == stream) return known;
    }
    return stream;
  }
  AllocateOptions with(BlockFlags flags) const {
    AllocateOptions options = on(a);
    options.flags = flags;
    return options;
  }
  /// A block on stream `a`.
  void* get(Bytes bytes) { return allocator.allocate(bytes.count, on(a)); }
  void* get(Bytes bytes, StreamHandle stream, DomainId domain = kDefaultDomain) {
    return allocator.allocate(bytes.count, on(stream, domain));
  }
  result<void*> ask(Bytes bytes, StreamHandle stream, DomainId domain = kDefaultDomain) {
    return allocator.try_allocate(bytes.count, on(stream, domain));
  }
  void free(void* block) { allocator.deallocate(block); }
  DomainId domain(Bytes limit = Bytes::max()) {
    return *allocator.create_domain({.name = "d", .limit = limit});
  }

  /// The GPU works on `stream` for so long.
  void work(StreamHandle stream, std::int64_t ms) {
    driver->launch(stream, milliseconds(ms), {}, device);
  }
  /// The same, using a block; each block has a generation of its own.
  void use(StreamHandle stream, void* block, Bytes bytes, std::uint64_t generation,
           std::int64_t ms) {
    const SimAccess access{to_address(block), bytes, generation};
    driver->launch(stream, milliseconds(ms), {&access, 1}, device);
  }
  void pass(std::int64_t ms) { driver->sleep_for(milliseconds(ms)); }
  /// Fences both streams and takes note of what the GPU has done.
  void fence() {
    const StreamRef streams[] = {a, b};
    (void)allocator.trim(Bytes::max(), device, streams);
  }
  /// Takes note of what the GPU has done, and changes nothing else.
  void look() { (void)allocator.trim(Bytes::max(), device); }

  AllocatorStats stats() const { return allocator.stats(device); }
  AllocatorStats stats(DomainId domain) const { return allocator.domain_stats(domain, device); }
  std::uint64_t calls(DriverCall call) const { return driver->meter().read().count(call); }
  /// Driver calls that create, move or release memory.
  std::uint64_t memory_calls() const {
    return calls(DriverCall::create) + calls(DriverCall::map) + calls(DriverCall::set_access) +
           calls(DriverCall::unmap) + calls(DriverCall::release) + calls(DriverCall::reserve);
  }
  std::uint64_t all_calls() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : driver->meter().read().calls) sum += n;
    return sum;
  }

  std::shared_ptr<SimDriver> driver;
  DeviceId device;
  StreamHandle a = driver->create_stream(device);
  StreamHandle b = driver->create_stream(device);
  CachingAllocator allocator;

 private:
  std::vector<StreamRef> resolved_;
};

/// True when a driver has got everything back.
inline bool nothing_left(const SimDriver& driver) {
  return driver.extent_bytes() == 0_B && driver.mapping_count() == 0 &&
         driver.reserved_addresses() == 0_B && driver.event_count() == 0;
}

}  // namespace bursar::test
