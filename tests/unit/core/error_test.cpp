// SPDX-License-Identifier: Apache-2.0
// Errors say what they know and leave out what they do not.
#include <set>
#include <string>

#include <bursar/core/error.hpp>

#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::literals;

namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every kind of error has a name of its own", "[core][error]") {
  std::set<std::string> names;
  constexpr int kKinds = static_cast<int>(ErrorKind::canceled) + 1;
  for (int kind = 0; kind < kKinds; ++kind) names.insert(to_string(static_cast<ErrorKind>(kind)));
  CHECK(names.size() == kKinds);
  CHECK(names.count("unknown") == 0);
}

TEST_CASE("only over_budget and device_oom may be tried again", "[core][error]") {
  constexpr int kKinds = static_cast<int>(ErrorKind::canceled) + 1;
  for (int i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    CAPTURE(to_string(kind));
    CHECK(error{.kind = kind}.retryable() ==
          (kind == ErrorKind::over_budget || kind == ErrorKind::device_oom));
  }
}

TEST_CASE("an error remembers where it was made", "[core][error]") {
  const error e{.kind = ErrorKind::driver_fault};
  CHECK(e.line == __LINE__ - 1);
  CHECK(std::string(e.file) == __FILE__);
}

TEST_CASE("an error's text tells kind, message, sizes, device, code and place", "[core][error]") {
  const std::string text = to_string(error{.kind = ErrorKind::over_budget,
                                           .driver_code = 2,
                                           .message = "the task has used its limit",
                                           .device = DeviceId{3},
                                           .asked = 3_GiB,
                                           .free = 512_B,
                                           .limit = 2_GiB,
                                           .file = "some.cpp",
                                           .line = 12});
  CHECK(text ==
        "over_budget: the task has used its limit (device 3, asked 3072.0 MiB, free 512 B, "
        "limit 2048.0 MiB, driver code 2) [some.cpp:12]");
}

TEST_CASE("an error's text leaves out what is not known", "[core][error]") {
  const std::string text = to_string(error{.kind = ErrorKind::forked, .message = "a child"});
  for (const char* part : {"asked", "free", "limit", "driver code"}) {
    CAPTURE(part);
    CHECK_FALSE(mentions(text, part));
  }
}

TEST_CASE("out of memory says that nothing is free", "[core][error]") {
  CHECK(mentions(to_string(error{.kind = ErrorKind::device_oom, .asked = 1_GiB}), "free 0 B"));
}

TEST_CASE("the exception carries the error and its text", "[core][error]") {
  const error e{.kind = ErrorKind::device_lost, .message = "reset the device"};
  const Error thrown(e);
  CHECK(thrown.details().kind == ErrorKind::device_lost);
  CHECK(thrown.what() == to_string(e));
}
