// SPDX-License-Identifier: Apache-2.0
// The bundled traces, as far as they can be replayed in every build.
#include "recorded_traces.hpp"
#include "support/catch.hpp"

using namespace bursar;
using bursar::test::bundled;
using bursar::test::kMade;
using bursar::test::kRecorded;
using bursar::test::replay_once;

TEST_CASE("the stand-in wastes what PyTorch was measured to waste", "[replay][recorded]") {
  const auto [name, measured] = GENERATE(table<const char*, double>({{"gpt_train", 0.581},
                                                                     {"lora_recompute", 0.552},
                                                                     {"llm_serve", 0.581},
                                                                     {"vision_multiscale", 0.730},
                                                                     {"offload_train", 0.664},
                                                                     {"multi_model", 0.722}}));
  INFO(name);
  const ReplayRow row = replay_once({bundled(name)}, "segment_cache");
  CHECK(row.utilization() == Approx(measured).margin(0.012));
}

TEST_CASE("bursar serves the beginnings of all traces at once", "[replay][recorded]") {
  constexpr std::size_t kEvents = 600;
  std::vector<Trace> traces;
  for (const std::string& name : kRecorded) traces.push_back(bundled(name));
  traces.push_back(bundled(kMade));
  for (Trace& trace : traces) trace.events.resize(kEvents);
  const ReplayRow row =
      replay_once(traces, "bursar", {.gpu_lag = milliseconds(50), .detector = true});
  CHECK_FALSE(row.ran_out);
  CHECK(row.operations == kEvents * traces.size());
  CHECK(row.reserved_peak() >= row.requested_peak);
}
