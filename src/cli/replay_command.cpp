// SPDX-License-Identifier: Apache-2.0
// `bursar replay`: options in, a table and perhaps files out.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bursar/core/parse_bytes.hpp>
#include <bursar/driver/cuda_driver.hpp>

#include "command.hpp"
#include "progress_bar.hpp"
#include "replay/cuda_device.hpp"
#include "replay/html_report.hpp"
#include "replay/replay.hpp"
#include "replay/replay_report.hpp"
#include "replay/sim_device.hpp"

namespace bursar {
inline namespace v0 {
namespace {

constexpr const char* kDescription =
    "Replays recorded allocations and measures the allocator that serves them.\n"
    "\n"
    "A trace is a CSV log as RMM writes it, plain or .gz. Events follow each other as fast as the\n"
    "device allows; on sim, a device made of rules and measured prices, time is trace time plus\n"
    "driver time and is virtual. ns/op is real time inside the allocator's calls, on sim the\n"
    "simulation of the driver included. With --gpu-lag a line under the table says how little "
    "memory\n"
    "any allocator could hold that never waits for the GPU; it counts trace time, not driver time.";

constexpr const char* kFooter =
    "Allocators: bursar; on a GPU also cuda_malloc and cuda_async, in a build with PyTorch also\n"
    "torch and torch_expandable; on sim segment_cache, a stand-in for the segment caching of\n"
    "today's frameworks. bursar takes its options from BURSAR_CONF.\n"
    "A pass that runs out of memory ends there; its row says so, and the exit code is 0.\n"
    "Exit codes: 0 done, 1 something failed, 2 the request or its input is unusable.";

struct ReplayRequest {
  std::string device = "auto";
  std::vector<std::string> allocators{"bursar"};
  int passes = 1;
  std::optional<Bytes> capacity;
  bool concurrent = false;
  double gpu_lag_ms = 0;
  std::string json;
  std::string html;
  std::vector<std::string> paths;
};

/// Gives each replay a device of its own, so that none finds what another left.
class DeviceSource {
 public:
  explicit DeviceSource(const ReplayRequest& request) : limit_(request.capacity) {
    if (limit_) sim_.capacity = *limit_;
    sim_.gpu_lag = Duration{static_cast<std::int64_t>(request.gpu_lag_ms * 1e6)};
    if (request.device == "sim") return;
    result<std::shared_ptr<Driver>> gpu = open_cuda_driver();
    if (gpu) gpu_ = *gpu;
    if (!gpu && request.device == "cuda") throw BadRequest(to_string(gpu.failure()));
    if (gpu_ && sim_.gpu_lag != Duration{}) {
      throw BadRequest("--gpu-lag is for the simulated device: add --device sim");
    }
  }

  std::unique_ptr<ReplayDevice> open() const {
    if (gpu_) return make_cuda_device(gpu_, limit_);
    return std::make_unique<SimDevice>(sim_);
  }

 private:
  std::shared_ptr<Driver> gpu_;  ///< null: sim
  std::optional<Bytes> limit_;
  SimDeviceOptions sim_;
};

/// The names asked for, `all` spelled out. Throws BadRequest for a name the device does not have.
std::vector<std::string> choose_allocators(const ReplayRequest& request,
                                           const ReplayDevice& device) {
  const std::vector<std::string_view> known = device.allocators();
  if (request.allocators == std::vector<std::string>{"all"}) return {known.begin(), known.end()};
  for (const std::string& name : request.allocators) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw BadRequest(fmt::format("no allocator '{}' on {}; there are: {}", name, device.name(),
                                 fmt::join(known, ", ")));
  }
  return request.allocators;
}

std::vector<Trace> read_traces(const std::vector<std::string>& paths) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    traces.push_back(read_trace(path));
    if (traces.back().failures == 0) continue;
    fmt::print(stderr, "{}: {} failed allocations recorded, not replayed\n", path,
               traces.back().failures);
  }
  return traces;
}

/// What all replays came to.
struct Outcome {
  std::vector<ReplayRow> rows;
  std::vector<ReplayPicture> pictures;  ///< one for traces replayed together, where asked for
};

/// Replays `traces` together with each of `allocators`.
void replay_together(std::span<const Trace> traces, const std::vector<std::string>& allocators,
                     const DeviceSource& source, const ReplayRequest& request, Outcome& outcome) {
  std::optional<PictureWatch> watch;
  if (!request.html.empty()) watch.emplace(traces, request.passes);
  for (const std::string& allocator : allocators) {
    ProgressBar bar(
        fmt::format("{}{}: {}", traces[0].name, traces.size() > 1 ? "+..." : "", allocator));
    ReplayOptions options;
    options.passes = request.passes;
    options.watch = watch ? &*watch : nullptr;
    options.progress = [&](std::uint64_t done, std::uint64_t total) { bar.show(done, total); };
    const std::unique_ptr<ReplayDevice> device = source.open();
    const std::unique_ptr<ReplayTarget> target = device->make_target(allocator);
    for (ReplayRow& row : replay(traces, *device, *target, options)) {
      outcome.rows.push_back(std::move(row));
    }
  }
  if (watch) outcome.pictures.push_back(watch->picture());
}

/// A file to be written last, opened first: better refused before the replay than after.
class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {
    if (path_.empty()) return;
    file_.open(path_);
    if (!file_) throw BadRequest(fmt::format("cannot write {}", path_));
  }

  bool wanted() const { return file_.is_open(); }
  void write(const std::string& text) {
    file_ << text << std::flush;
    if (!file_) throw std::runtime_error(fmt::format("cannot write {}", path_));
  }

 private:
  std::string path_;  ///< empty: not wanted
  std::ofstream file_;
};

void run_replay(const ReplayRequest& request) {
  const DeviceSource source(request);
  const std::vector<std::string> allocators = choose_allocators(request, *source.open());
  const std::vector<Trace> traces = read_traces(request.paths);
  Output json(request.json);
  Output html(request.html);

  Outcome outcome;
  const std::span<const Trace> all(traces);
  const std::size_t together = request.concurrent ? traces.size() : 1;
  for (std::size_t i = 0; i < traces.size(); i += together) {
    replay_together(all.subspan(i, together), allocators, source, request, outcome);
  }
  fmt::print("{}", to_table(outcome.rows));
  if (json.wanted()) json.write(to_json(outcome.rows));
  if (html.wanted()) html.write(to_html(outcome.rows, outcome.pictures));
}

void set_capacity(ReplayRequest& request, const std::string& text) {
  request.capacity = parse_bytes(text);
  if (request.capacity.value_or(Bytes{0}) == Bytes{0}) {
    throw CLI::ValidationError("--capacity",
                               "'" + text + "' is no size like 24GiB, 512MiB or 1000");
  }
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto request = std::make_shared<ReplayRequest>();
  CLI::App* command = app.add_subcommand("replay", kDescription);
  command->footer(kFooter);
  command->add_option("--device", request->device, "sim, cuda, or auto: cuda where there is a GPU")
      ->check(CLI::IsMember({"sim", "cuda", "auto"}))
      ->capture_default_str();
  command
      ->add_option("--allocator", request->allocators,
                   "allocators to compare, separated by commas; `all` for all the device has")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME[,NAME...]")
      ->capture_default_str();
  command->add_option("--passes", request->passes, "replays in a row, the cache kept between them")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--capacity", [request](const std::string& text) { set_capacity(*request, text); },
          "memory of the simulated device (default: an H200's, 143771MiB); on a GPU the most that "
          "bursar may hold, the others are not limited")
      ->type_name("SIZE");
  command->add_flag("--concurrent", request->concurrent,
                    "replay all traces at once, each on a thread and streams of its own");
  command
      ->add_option("--gpu-lag", request->gpu_lag_ms,
                   "sim: how far the GPU is behind, a block's last kernel ends this much later "
                   "than its free")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("MS");
  command->add_option("--json", request->json, "also write the rows to this file")
      ->type_name("FILE");
  command
      ->add_option("--html", request->html,
                   "also write a page: rows, bytes over time, and bursar's addresses at the "
                   "requested peak")
      ->type_name("FILE");
  command->add_option("TRACE", request->paths, "logs to replay")->required()->type_name("");
  command->callback([request] { run_replay(*request); });
}

}  // namespace v0
}  // namespace bursar
