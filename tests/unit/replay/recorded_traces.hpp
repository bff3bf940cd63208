// SPDX-License-Identifier: Apache-2.0
// The bundled traces, and one pass over them on the simulated device.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "replay/replay.hpp"
#include "replay/sim_device.hpp"

namespace bursar::test {

inline const std::vector<std::string> kRecorded{"gpt_train",      "llm_serve",
                                                "lora_recompute", "multi_model",
                                                "offload_train",  "vision_multiscale"};
inline const std::string kMade = "kv_sessions";

/// A trace that the policy was not tuned on, in the folder unseen, and what it is held to.
struct Unseen {
  std::string name;
  double least_utilization;
};
inline const std::vector<Unseen> kUnseen{
    {"unseen/batch_decode", 0.955},   {"unseen/diffusion_train", 0.98},
    {"unseen/encoder_tune", 0.985},   {"unseen/gan_train", 0.985},
    {"unseen/kv_sessions_11", 0.955}, {"unseen/kv_sessions_12", 0.955},
    {"unseen/moe_train", 0.985},      {"unseen/pipeline_serve", 0.985},
    {"unseen/speech_train", 0.98}};

inline Trace bundled(const std::string& name) {
  return read_trace(std::string(TRACE_FOLDER) + "/" + name + ".csv.gz");
}

/// All of `traces` at once, `passes` times.
inline std::vector<ReplayRow> replay_passes(const std::vector<Trace>& traces, const char* allocator,
                                            int passes, const SimDeviceOptions& options = {}) {
  SimDevice device(options);
  const auto target = device.make_target(allocator);
  ReplayOptions how;
  how.passes = passes;
  return replay(traces, device, *target, how);
}
inline ReplayRow replay_once(const std::vector<Trace>& traces, const char* allocator,
                             const SimDeviceOptions& options = {}) {
  return replay_passes(traces, allocator, 1, options).at(0);
}

/// Sets BURSAR_CONF, which the replay's target reads, for as long as it lives.
class Conf {
 public:
  explicit Conf(const char* text) { ::setenv("BURSAR_CONF", text, 1); }
  ~Conf() { ::unsetenv("BURSAR_CONF"); }
  Conf(const Conf&) = delete;
  Conf& operator=(const Conf&) = delete;
};

}  // namespace bursar::test
