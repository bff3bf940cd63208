// SPDX-License-Identifier: Apache-2.0
// Stitching, leasing and giving up views while driver calls fail: each kind, at each n, once and
// for ever.
#include <memory>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/driver/sim_driver.hpp>

#include "support/catch.hpp"

namespace bursar::test {

using namespace bursar::literals;

namespace {

AllocatorOptions stitching() {
  AllocatorOptions options;
  options.growth_divisor = 64;
  options.extent_share = 1'000'000;
  options.guard = options.wide_guard = 0;
  options.map_price = 0;
  options.max_views = 2;
  options.wait_limit = milliseconds(5);
  return options;
}

/// Blocks come and go so that views are made, found again, shared, dropped and trimmed.
class Program {
 public:
  Program() : driver_(std::make_shared<SimDriver>(sim())), allocator_(driver_, stitching()) {}

  SimDriver& driver() { return *driver_; }
  /// Every step must leave a state that is true.
  void run() {
    const StreamHandle a = driver_->create_stream();
    const StreamHandle b = driver_->create_stream();
    for (int i = 0; i < 8; ++i) get(4_MiB, a);
    free_every_second();
    for (const Bytes size : {16_MiB, 10_MiB, 7_MiB}) {
      get(size, a);
      free_last(a);
      get(size, a);
    }
    free_every_second();
    get(21_MiB, b);
    get(33_MiB, a);
    get(100_B, b);
    free_every_second();
    const StreamRef streams[] = {a, b};
    driver_->sleep_for(milliseconds(10));
    allocator_.trim(8_MiB, {}, streams);
    check();
    get(12_MiB, b);
  }
  void finish() {
    driver_->clear_faults();
    driver_->synchronize_device();
    for (void* block : blocks_) REQUIRE(allocator_.try_deallocate(block, StreamHandle{}));
    blocks_.clear();
    const StreamRef any[] = {StreamRef{StreamHandle{}}};
    for (int i = 0; i < 3; ++i) allocator_.trim(0_B, {}, any);
    check();
    CHECK(allocator_.stats().quarantine == 0_B);
  }

 private:
  static SimOptions sim() {
    SimOptions options;
    options.capacity = 96_MiB;
    options.detector = true;
    return options;
  }
  void get(Bytes size, StreamHandle stream) {
    AllocateOptions options;
    options.stream = stream;
    const result<void*> block = allocator_.try_allocate(size.count, options);
    if (block) {
      const SimAccess access{to_address(*block), size, ++generation_};
      driver_->launch(stream, microseconds(50), {&access, 1});
      blocks_.push_back(*block);
    }
    check();
  }
  void free_last(StreamHandle stream) {
    if (blocks_.empty()) return;
    REQUIRE(allocator_.try_deallocate(blocks_.back(), stream));
    blocks_.pop_back();
    check();
  }
  void free_every_second() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      REQUIRE(allocator_.try_deallocate(blocks_[i]));
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
      check();
    }
  }
  void check() {
    const result<void> good = allocator_.validate();
    INFO((good ? "" : good.failure().message));
    REQUIRE(good);
    REQUIRE(driver_->violations().empty());
    REQUIRE(allocator_.stats().reserved == driver_->extent_bytes());
  }

  std::shared_ptr<SimDriver> driver_;
  CachingAllocator allocator_;
  std::vector<void*> blocks_;
  std::uint64_t generation_ = 0;
};

}  // namespace

TEST_CASE("views survive any driver call that fails", "[fault][views]") {
  const DriverCall call =
      GENERATE(DriverCall::create, DriverCall::map, DriverCall::set_access, DriverCall::unmap,
               DriverCall::release, DriverCall::reserve, DriverCall::event_create,
               DriverCall::event_record, DriverCall::event_query);
  const bool forever = GENERATE(false, true);
  const DriverCode code = GENERATE(DriverCode::unknown, DriverCode::out_of_memory);
  CAPTURE(to_string(call), forever, static_cast<int>(code));
  std::uint64_t hit = 0;
  for (std::uint64_t n = 1; n < 400; ++n) {
    Program program;
    program.driver().fail(call, n, forever, code);
    program.run();
    const std::uint64_t faults = program.driver().faults_hit();
    program.finish();
    if (faults == 0) break;
    hit += faults;
  }
  CHECK(hit > 0);
}

TEST_CASE("views survive an undo that fails too", "[fault][views]") {
  const bool forever = GENERATE(false, true);
  std::uint64_t hit = 0;
  for (std::uint64_t n = 1; n < 400; ++n) {
    Program program;
    program.driver().fail(DriverCall::set_access, n, false, DriverCode::unknown);
    program.driver().fail(DriverCall::unmap, 1, forever, DriverCode::unknown);
    program.run();
    const std::uint64_t faults = program.driver().faults_hit();
    program.finish();
    if (faults <= (forever ? 0u : 1u)) break;
    hit += faults;
  }
  CHECK(hit > 1);
}

}  // namespace bursar::test
