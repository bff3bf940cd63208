// SPDX-License-Identifier: Apache-2.0
// Scenario: one scripted life of an allocator in which some driver call fails.
//
// The script meets every mechanism: growth, moves by alias and by unmap, boundary pages, several
// domains and streams, record_stream, pinned and shareable blocks, limits, a full device, waiting,
// capture, trim, retiring, teardown. After every single step it proves that the state is valid,
// that the sums hold, that every byte of the driver is accounted for, and that a failed step failed
// with an error that tells the truth.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {

/// The simulated driver; on demand the undo of a mapping whose set_access failed fails as well.
class ScenarioDriver final : public SimDriver {
 public:
  enum class Undo { works, fails_once, fails_forever };

  ScenarioDriver(const SimOptions& options, Undo undo) : SimDriver(options), undo_(undo) {}

  DriverCode set_access(VaRange range, std::span<const DeviceId> devices) noexcept override {
    const DriverCode code = SimDriver::set_access(range, devices);
    if (code != DriverCode::success && undo_ != Undo::works) {
      fail(DriverCall::unmap, 1, undo_ == Undo::fails_forever, DriverCode::unknown);
    }
    return code;
  }

 private:
  Undo undo_;
};

/// Which call fails, from which one on, and how.
struct Fault {
  DriverCall call{};
  std::uint64_t nth = 1;
  bool forever = false;
  DriverCode code = DriverCode::unknown;
  ScenarioDriver::Undo undo = ScenarioDriver::Undo::works;
  bool in_teardown = false;  ///< the fault stays when the allocator ends
};

/// What a run came to.
struct Outcome {
  std::uint64_t hits = 0;     ///< injected failures that happened
  std::string complaint;      ///< the first thing that was wrong; empty when all was well
  std::uint64_t moved = 0;    ///< idle extents that served elsewhere
  std::uint64_t refused = 0;  ///< allocations that failed
};

class Scenario {
 public:
  Scenario(CapabilityLevel level, const Fault& fault);
  Outcome run();

 private:
  static constexpr std::size_t kBlocks = 48;

  // The acts of the script, in order.
  void grow();
  void free_and_move();
  void change_streams();
  void use_flags();
  void trim_and_regrow();
  void retire();
  void reach_the_limit();
  void fill_the_device();
  void capture();
  void finish();
  void end();

  // Steps: each does one public call and proves the state after it.
  void get(std::size_t block, Bytes size, StreamRef stream, DomainId domain = kDefaultDomain,
           BlockFlags flags = BlockFlags::none);
  void free(std::size_t block);
  void free_on(std::size_t block, StreamRef stream);
  void record(std::size_t block, StreamRef stream);
  void trim(Bytes target);
  void work(StreamHandle stream, std::int64_t ms) { driver_->launch(stream, milliseconds(ms)); }

  template <class T>
  void prove(const char* step, const result<T>& outcome, DomainId domain = kDefaultDomain);
  void prove(const char* step);
  bool truthful(const error& e, DomainId domain) const;
  void complain(const std::string& what);

  CapabilityLevel level_;
  Fault fault_;
  std::shared_ptr<ScenarioDriver> driver_;
  std::unique_ptr<CachingAllocator> allocator_;
  StreamHandle a_, b_, c_;
  std::vector<StreamRef> streams_;
  DomainId limited_{}, other_{};
  std::array<void*, kBlocks> blocks_{};
  bool capturing_ = false;
  std::uint64_t refused_ = 0;
  std::string complaint_;
};

}  // namespace bursar::test
