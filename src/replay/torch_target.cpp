// SPDX-License-Identifier: Apache-2.0
// The statistics are read after each allocation, outside of what is timed, and their peak is reset
// each time: so memory that was held within one call only is seen, and passes are told apart.
#include "torch_target.hpp"

#include <string>

#include <dlfcn.h>

#include <bursar/core/log.hpp>

namespace bursar {
inline namespace v0 {
namespace {

/// Found by the program's own search path.
constexpr const char* kModule = "libbursar_torch_peer.so";

error torch_error(const TorchPeer& peer, TorchOutcome outcome, Bytes asked = {}) {
  error e;
  e.asked = asked;
  if (outcome == TorchOutcome::out_of_memory) {
    e.kind = ErrorKind::device_oom;
    e.message = "PyTorch's allocator found no memory, nor did giving back its cache help";
  } else {
    e.kind = ErrorKind::driver_fault;
    e.message = "PyTorch's allocator failed; the log has its own words";
    log(LogLevel::error, std::string("torch: ") + peer.message());
  }
  return e;
}

class TorchTarget final : public ReplayTarget {
 public:
  TorchTarget(const TorchPeer& peer, bool expandable) : peer_(peer), expandable_(expandable) {
    TorchOutcome outcome = peer_.start(expandable);
    if (outcome == TorchOutcome::done) outcome = peer_.memory(&known_);
    if (outcome != TorchOutcome::done) throw Error(torch_error(peer_, outcome));
    meter_.created(Bytes{known_.reserved});
  }
  ~TorchTarget() override {
    if (const TorchOutcome outcome = peer_.stop(); outcome != TorchOutcome::done) {
      log(LogLevel::error, to_string(torch_error(peer_, outcome)));
    }
  }

  const char* name() const noexcept override { return expandable_ ? "torch_expandable" : "torch"; }
  result<StreamRef> resolve(StreamHandle stream) noexcept override { return StreamRef(stream); }
  /// PyTorch keeps a segment's stream by its handle and synchronizes it when it unmaps, so its
  /// cache must go while the stream still exists.
  result<void> retire(StreamRef) noexcept override {
    if (const TorchOutcome outcome = peer_.stop(); outcome != TorchOutcome::done) {
      return torch_error(peer_, outcome);
    }
    return {};
  }

  result<void*> allocate(Bytes size, StreamRef stream) noexcept override {
    void* block = nullptr;
    const TorchOutcome outcome = peer_.allocate(&block, size.count, stream.handle.value);
    if (outcome != TorchOutcome::done) return torch_error(peer_, outcome, size);
    return block;
  }
  result<void> deallocate(void* block, StreamRef) noexcept override {
    if (block == nullptr) return {};
    const TorchOutcome outcome = peer_.deallocate(block);
    if (outcome != TorchOutcome::done) return torch_error(peer_, outcome);
    return {};
  }

  void observe() noexcept override {
    TorchMemory now{};
    if (peer_.memory(&now) != TorchOutcome::done) return;
    count(DriverCall::create, now.device_allocs - known_.device_allocs);
    count(DriverCall::release, now.device_frees - known_.device_frees);
    if (now.reserved_highest > known_.reserved) {
      meter_.created(Bytes{now.reserved_highest - known_.reserved});
      meter_.released(Bytes{now.reserved_highest - now.reserved});
    } else {
      meter_.released(Bytes{known_.reserved - now.reserved});
    }
    known_ = now;
  }
  bool times_driver() const noexcept override { return false; }
  CallMeter& meter() noexcept override { return meter_; }

 private:
  void count(DriverCall call, std::uint64_t calls) noexcept {
    for (; calls > 0; --calls) meter_.add(call, Duration{});
  }

  const TorchPeer& peer_;
  bool expandable_;
  TorchMemory known_{};  ///< as the meter has it
  CallMeter meter_;
};

const TorchPeer* load_torch_peer() {
  using Entry = const TorchPeer* (*)();
  void* module = dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
  void* entry = module != nullptr ? dlsym(module, kTorchPeerSymbol) : nullptr;
  if (entry == nullptr) {
    const char* text = dlerror();
    const std::string why = text != nullptr ? text : "no entry";
    // A module that is not there is no fault, one that cannot be loaded is.
    const bool absent = why.starts_with(kModule);
    log(absent ? LogLevel::info : LogLevel::warning, "no PyTorch to compare with: " + why);
    return nullptr;
  }
  return reinterpret_cast<Entry>(entry)();
}

}  // namespace

const TorchPeer* find_torch_peer() {
  static const TorchPeer* const peer = load_torch_peer();
  return peer;
}

std::unique_ptr<ReplayTarget> make_torch_target(const TorchPeer& peer, bool expandable) {
  return std::make_unique<TorchTarget>(peer, expandable);
}

}  // namespace v0
}  // namespace bursar
