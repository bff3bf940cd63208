// SPDX-License-Identifier: Apache-2.0
// Every driver call fails, the first of its kind, the second, ..., until a run meets no failure.
#include <set>
#include <string>

#include "fault/scenario.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

constexpr CapabilityLevel kLevels[] = {CapabilityLevel::full, CapabilityLevel::no_aliases,
                                       CapabilityLevel::no_vmm};

/// Runs the scenario for n = 1, 2, ... until nothing fails any more; the failures injected.
std::uint64_t fail_each(CapabilityLevel level, Fault fault) {
  std::uint64_t injected = 0;
  for (fault.nth = 1;; ++fault.nth) {
    const Outcome outcome = Scenario(level, fault).run();
    CAPTURE(to_string(level), to_string(fault.call), fault.nth, fault.forever,
            static_cast<int>(fault.code), static_cast<int>(fault.undo), fault.in_teardown);
    REQUIRE(outcome.complaint == "");
    if (outcome.hits == 0) return injected;
    injected += outcome.hits;
  }
}

/// The kinds of calls that an allocator makes on a device of this level.
std::set<DriverCall> calls_of(CapabilityLevel level) {
  using enum DriverCall;
  std::set<DriverCall> calls{create,        release,   event_create,     event_record, event_query,
                             event_destroy, stream_id, stream_capturing, memory_info,  trim_pools};
  if (level != CapabilityLevel::no_vmm) {
    calls.insert({map, set_access, unmap, reserve, unreserve, memset});
  }
  return calls;
}

/// Fails each call of each kind; complains when a kind was never met.
void fail_all(Fault fault) {
  for (const CapabilityLevel level : kLevels) {
    std::uint64_t injected = 0;
    for (std::size_t kind = 0; kind < kDriverCallCount; ++kind) {
      fault.call = static_cast<DriverCall>(kind);
      const std::uint64_t hits = fail_each(level, fault);
      const bool teardown_only =
          fault.call == DriverCall::unreserve || fault.call == DriverCall::event_destroy;
      const bool expected =
          calls_of(level).contains(fault.call) && (fault.in_teardown || !teardown_only);
      CAPTURE(to_string(level), to_string(fault.call));
      CHECK((hits > 0) == expected);
      injected += hits;
    }
    WARN(to_string(level) << ": " << injected << " failures injected");
    CHECK(injected > 0);
  }
}

}  // namespace

TEST_CASE("the scenario runs clean without a fault", "[fault]") {
  for (const CapabilityLevel level : kLevels) {
    const Outcome outcome = Scenario(level, Fault{DriverCall::import_handle}).run();
    CHECK(outcome.hits == 0);
    CHECK(outcome.complaint == "");
    const bool vmm = level != CapabilityLevel::no_vmm;
    CHECK(outcome.refused >= 3);  // by a limit, by the device, by a capture
    CHECK((outcome.refused == 3 || !vmm));
    CHECK((outcome.moved >= 8) == vmm);
  }
}

TEST_CASE("any call may fail once with an unknown code", "[fault]") { fail_all(Fault{}); }

TEST_CASE("any call may fail from then on with an unknown code", "[fault]") {
  Fault fault;
  fault.forever = true;
  fail_all(fault);
}

TEST_CASE("any call may run out of memory", "[fault]") {
  Fault fault;
  fault.code = DriverCode::out_of_memory;
  fault.forever = GENERATE(false, true);
  fail_all(fault);
}

TEST_CASE("any call may be the first of a lost device", "[fault]") {
  Fault fault;
  fault.code = DriverCode::illegal_address;
  fault.forever = true;
  fail_all(fault);
}

TEST_CASE("any call may fail with the fault still there when the allocator ends", "[fault]") {
  Fault fault;
  fault.in_teardown = true;
  fault.forever = GENERATE(false, true);
  fail_all(fault);
}

TEST_CASE("the undo of a failed mapping may fail too", "[fault][undo]") {
  Fault fault;
  fault.call = DriverCall::set_access;
  fault.undo = GENERATE(ScenarioDriver::Undo::fails_once, ScenarioDriver::Undo::fails_forever);
  fault.code = GENERATE(DriverCode::unknown, DriverCode::out_of_memory);
  fault.forever = GENERATE(false, true);
  for (const CapabilityLevel level : {CapabilityLevel::full, CapabilityLevel::no_aliases}) {
    const std::uint64_t injected = fail_each(level, fault);
    WARN(to_string(level) << ": " << injected << " failures injected");
    CHECK(injected > 0);
  }
}

}  // namespace bursar::test
