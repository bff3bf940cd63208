// SPDX-License-Identifier: Apache-2.0
// SimDriver: a device made of rules, so that everything can be tested and compared without a GPU.
//
// It refuses what the hardware refuses (an extent is mapped whole, unmapped whole, never at an
// offset), charges the measured price of each call to a virtual clock, and knows streams whose work
// takes virtual time. It can back extents with real memory (memfd: aliases and descriptor exchange
// are then real), keep its state in a file that several processes share, and fail the n-th call of
// any kind on demand. The detector inside reports memory that two blocks use unordered.
//
// Not modeled: the legacy default stream's implicit waiting for other streams, the launching of
// captured graphs, and memory that an importing process keeps after the exporter let go of it (its
// bytes count as free). A forked child gets not_initialized from its parent's driver but, other
// than on a GPU, may make a SimDriver of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <bursar/driver/driver.hpp>

namespace bursar {
inline namespace v0 {

struct SimOptions {
  int devices = 1;                       ///< at most 16
  Bytes capacity{Bytes{24ull << 30}};    ///< of each device
  Bytes granularity{Bytes{2ull << 20}};  ///< a power of two
  CapabilityLevel capability = CapabilityLevel::full;
  Bytes context{};  ///< charged to the capacity for each process, per device
  Bytes max_reservation{Bytes{64ull << 40}};  ///< a larger single reserve is refused
  /// Extents are real memory (memfd), mappings real addresses. Without it there is nothing to read:
  /// read() is not_supported.
  bool backed = false;
  bool detector = false;                     ///< track every access; see detector()
  bool free_of_charge = false;               ///< calls cost no virtual time
  std::string shared_state;                  ///< a file: several processes then share one capacity
  Duration death_delay = milliseconds(366);  ///< until a dead process's bytes are free (shared)
};

/// One access of simulated work: bytes at an address, on behalf of one generation of a block.
/// Two generations that touch the same physical bytes must be ordered; within one generation
/// anything goes. The tester gives every allocation a generation of its own, from 1.
struct SimAccess {
  DeviceAddress address{};
  Bytes size{};
  std::uint64_t generation = 0;
};

/// What the detector found.
struct Violation {
  enum class Kind : std::uint8_t {
    unordered_access,  ///< two generations touch the same bytes, neither before the other
    unmapped_in_use,   ///< a mapping was taken away while its work was not known to be done
    released_in_use,   ///< the same for an extent
    access_unmapped,   ///< work was given an address without memory or access rights
    dangling_stream,   ///< a destroyed stream's handle reached the driver
    capture_spoiled,   ///< a call that spoils a capture under way
  };
  Kind kind{};
  std::string text;  ///< which block, stream, bytes, call
};

class BURSAR_EXPORT SimDriver : public Driver {
 public:
  /// Throws Error(invalid_argument) for options that contradict each other, and driver_fault when
  /// the shared state cannot be opened.
  explicit SimDriver(const SimOptions& options = {});
  ~SimDriver() override;

  // -- the device's side: streams and work ---------------------------------------------------
  /// A stream of `device`. Its handle may equal that of one destroyed before; its id never does.
  StreamHandle create_stream(DeviceId device = {});
  /// The handle dangles from now on. Work given to it still runs.
  void destroy_stream(StreamHandle stream);
  /// Gives work to `stream`: it starts after what was given before and takes `duration`. On a
  /// capturing stream it is only recorded: it takes no time and touches nothing.
  void launch(StreamHandle stream, Duration duration, std::span<const SimAccess> accesses = {},
              DeviceId device = {});
  /// The host waits for all work of the stream / of the device; the clock moves on to its end.
  void synchronize(StreamHandle stream, DeviceId device = {});
  void synchronize_device(DeviceId device = {});
  void begin_capture(StreamHandle stream, DeviceId device = {});
  /// False when a call in between spoiled the capture.
  bool end_capture(StreamHandle stream, DeviceId device = {});

  // -- the clock -----------------------------------------------------------------------------
  /// Moves the clock to `time`; never backwards.
  void advance_to(Duration time) noexcept;

  // -- faults --------------------------------------------------------------------------------
  /// The `nth` next call of `call` (1 is the next) fails with `code`; with `forever` all later ones
  /// do too. Several rules may be set at once. A failing call has no effect and costs its price.
  void fail(DriverCall call, std::uint64_t nth, bool forever = false,
            DriverCode code = DriverCode::out_of_memory);
  void clear_faults();
  /// How many injected failures have happened.
  std::uint64_t faults_hit() const;
  /// Real time that each call of `call` sleeps, outside all locks but the caller's.
  void delay(DriverCall call, Duration real_time);

  // -- what is true --------------------------------------------------------------------------
  /// The first 1,000 violations; empty without `detector`. A memset or read counts as an access of
  /// a generation of its own. An extent is in use until the host has seen its work complete: by
  /// synchronizing, or by an event query that said yes.
  std::vector<Violation> violations() const;
  /// Bytes of extents that exist / mappings that exist / addresses reserved / events that exist.
  Bytes extent_bytes() const;
  std::size_t mapping_count() const;
  Bytes reserved_addresses() const;
  std::size_t event_count() const;

  // -- Driver --------------------------------------------------------------------------------
  int device_count() const noexcept override;
  const DeviceInfo& device_info(DeviceId device) const noexcept override;
  DriverCode memory_info(DeviceId device, MemoryInfo& out) noexcept override;
  DriverCode trim_pools(DeviceId device) noexcept override;
  DriverCode create(DeviceId device, Bytes size, ExtentProperties properties,
                    ExtentHandle& out) noexcept override;
  DriverCode release(ExtentHandle extent) noexcept override;
  DriverCode export_handle(ExtentHandle extent, int& fd_out) noexcept override;
  DriverCode import_handle(DeviceId device, int fd, Bytes size,
                           ExtentHandle& out) noexcept override;
  DriverCode reserve(Bytes size, DeviceAddress hint, VaRange& out) noexcept override;
  DriverCode unreserve(VaRange range) noexcept override;
  DriverCode map(VaRange range, ExtentHandle extent) noexcept override;
  DriverCode set_access(VaRange range, std::span<const DeviceId> devices) noexcept override;
  DriverCode unmap(VaRange range) noexcept override;
  DriverCode malloc_plain(DeviceId device, Bytes size, DeviceAddress& out) noexcept override;
  DriverCode free_plain(DeviceAddress address) noexcept override;
  DriverCode stream_id(DeviceId device, StreamHandle stream, StreamId& out) noexcept override;
  DriverCode stream_capturing(DeviceId device, StreamHandle stream, bool& out) noexcept override;
  DriverCode event_create(DeviceId device, EventHandle& out) noexcept override;
  DriverCode event_destroy(EventHandle event) noexcept override;
  DriverCode event_record(DeviceId device, EventHandle event,
                          StreamHandle stream) noexcept override;
  DriverCode event_query(EventHandle event) noexcept override;
  DriverCode stream_wait(DeviceId device, StreamHandle stream, EventHandle event) noexcept override;
  DriverCode memset(DeviceId device, DeviceAddress address, std::uint8_t value, Bytes size,
                    StreamHandle stream) noexcept override;
  DriverCode read(DeviceId device, DeviceAddress address,
                  std::span<std::byte> out) noexcept override;
  Duration now() const noexcept override;
  void sleep_for(Duration duration) noexcept override;
  CallMeter& meter() noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace bursar
