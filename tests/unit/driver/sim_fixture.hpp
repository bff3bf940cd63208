// SPDX-License-Identifier: Apache-2.0
// What the tests of the simulated driver share: a driver with a few streams, and extents mapped in
// one line.
#pragma once

#include <array>
#include <stdexcept>

#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {

using namespace bursar::literals;
using enum DriverCode;

inline constexpr Bytes kPage = 2_MiB;

/// A SimDriver with shorthands. Every step that is not what a test is about aborts the test when it
/// fails, by throwing.
class SimFixture {
 public:
  explicit SimFixture(SimOptions options = {}) : driver(std::move(options)) {}

  static void must(DriverCode code) {
    if (code != success) throw std::runtime_error("driver call failed");
  }
  ExtentHandle extent(Bytes size = kPage, DeviceId device = {}) {
    ExtentHandle handle;
    must(driver.create(device, size, {}, handle));
    return handle;
  }
  VaRange range(Bytes size = kPage) {
    VaRange reserved{};
    must(driver.reserve(size, {}, reserved));
    return reserved;
  }
  /// `handle` at addresses of its own, usable by `device`.
  VaRange mapped(ExtentHandle handle, Bytes size = kPage, DeviceId device = {}) {
    const VaRange at = range(size);
    must(driver.map(at, handle));
    must(driver.set_access(at, std::array{device}));
    return at;
  }
  EventHandle event(DeviceId device = {}) {
    EventHandle handle;
    must(driver.event_create(device, handle));
    return handle;
  }
  /// An event recorded on `stream` now.
  EventHandle recorded(StreamHandle stream, DeviceId device = {}) {
    const EventHandle handle = event(device);
    must(driver.event_record(device, handle, stream));
    return handle;
  }
  /// One access of generation `generation` to `size` bytes at `offset` of `where`, taking 1 ms.
  void use(StreamHandle stream, VaRange where, std::uint64_t generation, Bytes offset = 0_B,
           Bytes size = 4_KiB) {
    const SimAccess access{where.begin + offset, size, generation};
    driver.launch(stream, milliseconds(1), std::array{access});
  }

  SimDriver driver;
};

/// How many violations of `kind` the driver has seen.
inline std::size_t count(const SimDriver& driver, Violation::Kind kind) {
  std::size_t n = 0;
  for (const Violation& v : driver.violations()) n += v.kind == kind ? 1 : 0;
  return n;
}

}  // namespace bursar::test
