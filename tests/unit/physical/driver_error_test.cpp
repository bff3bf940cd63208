// SPDX-License-Identifier: Apache-2.0
// The table from driver codes to error kinds.
#include <bursar/physical/driver_error.hpp>

#include "support/catch.hpp"

namespace bursar::test {

TEST_CASE("each driver code has its kind of error", "[physical][driver_error]") {
  struct Row {
    DriverCode code;
    DriverCall call;
    ErrorKind kind;
  };
  const Row row =
      GENERATE(Row{DriverCode::out_of_memory, DriverCall::create, ErrorKind::device_oom},
               Row{DriverCode::out_of_memory, DriverCall::reserve, ErrorKind::va_exhausted},
               Row{DriverCode::not_initialized, DriverCall::map, ErrorKind::forked},
               Row{DriverCode::not_supported, DriverCall::map, ErrorKind::not_supported},
               Row{DriverCode::capture_unsupported, DriverCall::create, ErrorKind::not_supported},
               Row{DriverCode::invalid_handle, DriverCall::stream_id, ErrorKind::invalid_argument},
               Row{DriverCode::illegal_address, DriverCall::create, ErrorKind::device_lost},
               Row{DriverCode::launch_failed, DriverCall::event_query, ErrorKind::device_lost},
               Row{DriverCode::ecc_uncorrectable, DriverCall::unmap, ErrorKind::device_lost},
               Row{DriverCode::invalid_value, DriverCall::create, ErrorKind::driver_fault},
               Row{DriverCode::unknown, DriverCall::create, ErrorKind::driver_fault});
  const error e = driver_error(row.code, row.call, DeviceId{3}, Bytes{512});
  CHECK(e.kind == row.kind);
  CHECK(e.driver_code == static_cast<int>(row.code));
  CHECK(e.device == DeviceId{3});
  CHECK(e.asked == Bytes{512});
}

}  // namespace bursar::test
