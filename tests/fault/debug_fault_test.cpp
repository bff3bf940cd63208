// SPDX-License-Identifier: Apache-2.0
// Passthrough, redzones and scrub while driver calls fail: each kind, at each n, once and for ever.
// Memory is real: every block is filled with its domain's number, and none may show another's.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/core/check.hpp>
#include <bursar/core/log.hpp>
#include <bursar/driver/sim_driver.hpp>

#include "support/catch.hpp"

namespace bursar::test {

using namespace bursar::literals;

namespace {

constexpr Bytes kPage = 64_KiB;

enum class Mode { passthrough, redzones, always, cross_domain, cross_domain_stitched };

AllocatorOptions options_of(Mode mode) {
  AllocatorOptions options;
  options.max_extent = kPage * 2;
  options.small_limit = kPage / 2;
  options.fence_batch = 2;
  options.wait_limit = milliseconds(5);
  options.stitch_limit = mode == Mode::cross_domain ? Bytes::max() : kPage;
  options.guard = options.wide_guard = options.map_price = 0;
  options.passthrough = mode == Mode::passthrough;
  options.redzones = mode == Mode::redzones;
  if (mode == Mode::always) options.scrub = Scrub::always;
  if (mode == Mode::cross_domain) options.scrub = Scrub::cross_domain;
  if (mode == Mode::cross_domain_stitched) options.scrub = Scrub::cross_domain;
  return options;
}

/// Blocks of three domains come and go on two streams until each has had the others' memory.
class Program {
 public:
  Program(Mode mode, CapabilityLevel level)
      : mode_(mode),
        driver_(std::make_shared<SimDriver>(sim(level))),
        allocator_(driver_, options_of(mode)) {
    set_log_sink([this](LogLevel level_of, std::string_view) {
      damage_ += level_of == LogLevel::error ? 1 : 0;
    });
    for (int i = 0; i < 2; ++i) domains_.push_back(*allocator_.create_domain({.name = "d"}));
  }
  ~Program() { set_log_sink({}); }

  SimDriver& driver() { return *driver_; }
  /// Every step must leave a state that is true.
  void run() {
    for (std::size_t round = 0; round < 4; ++round) {
      const StreamHandle stream = round % 2 == 0 ? a_ : b_;
      const DomainId domain = domains_[round % domains_.size()];
      for (const Bytes size : {1000_B, kPage * 3 / 2, 6_KiB, kPage * 7 / 2, kPage}) {
        get(size, stream, domain);
      }
      get(kPage / 2, stream, domain, BlockFlags::pinned);
      free_every_second();
      get(kPage * 5 / 2, stream == a_ ? b_ : a_, domain);
      driver_->sleep_for(milliseconds(static_cast<std::int64_t>(round)));
      free_every_second();
      const StreamRef streams[] = {a_, b_};
      allocator_.trim(round == 2 ? kPage * 4 : Bytes::max(), {}, streams);
      check();
    }
  }
  void finish() {
    driver_->clear_faults();
    driver_->synchronize_device();
    while (!blocks_.empty()) free_last();
    const StreamRef streams[] = {a_, b_};
    for (int i = 0; i < 3; ++i) allocator_.trim(0_B, {}, streams);
    check();
    CHECK(allocator_.stats().reserved == 0_B);
    CHECK(damage_ == 0);
  }

 private:
  struct Held {
    unsigned char* bytes;
    std::size_t size;
    unsigned char value;
    StreamHandle stream;
  };

  static SimOptions sim(CapabilityLevel level) {
    SimOptions options;
    options.capacity = kPage * 18;
    options.granularity = kPage;
    options.capability = level;
    options.detector = true;
    options.backed = true;
    return options;
  }
  void get(Bytes size, StreamHandle stream, DomainId domain, BlockFlags flags = BlockFlags::none) {
    AllocateOptions options;
    options.stream = stream;
    options.domain = domain;
    options.flags = flags;
    const result<void*> block = allocator_.try_allocate(size.count, options);
    check();
    if (!block) return;
    const SimAccess access{to_address(*block), size, ++generation_};
    driver_->launch(stream, microseconds(50), {&access, 1});
    const Held held{static_cast<unsigned char*>(*block), size.count,
                    static_cast<unsigned char>(domain.value + 1), stream};
    if (scrubs() && !clean(held)) FAIL("a block shows what another domain has written");
    std::memset(held.bytes, held.value, held.size);
    blocks_.push_back(held);
  }
  static bool all_are(const Held& held, unsigned char value) {
    return held.bytes[0] == value && std::memcmp(held.bytes, held.bytes + 1, held.size - 1) == 0;
  }
  /// Zero or, where the own domain's bytes may be seen, those.
  bool clean(const Held& held) const {
    if (mode_ == Mode::always) return all_are(held, 0);
    return std::all_of(held.bytes, held.bytes + held.size,
                       [&](unsigned char byte) { return byte == 0 || byte == held.value; });
  }
  bool scrubs() const { return mode_ != Mode::passthrough && mode_ != Mode::redzones; }
  void free(std::size_t index) {
    const Held held = blocks_[index];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index));
    if (!all_are(held, held.value)) FAIL("a live block's bytes were changed");
    REQUIRE(allocator_.try_deallocate(held.bytes));
    check();
  }
  void free_last() { free(blocks_.size() - 1); }
  void free_every_second() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) free(i);
  }
  void check() {
    const result<void> good = allocator_.validate();
    if (!good) FAIL(good.failure().message);
    if (!driver_->violations().empty()) FAIL(driver_->violations().front().text);
    const bool counted = allocator_.stats().reserved == driver_->extent_bytes();
    if (!counted) FAIL("the driver holds memory that nobody counts");
  }

  Mode mode_;
  std::shared_ptr<SimDriver> driver_;
  CachingAllocator allocator_;
  StreamHandle a_ = driver_->create_stream();
  StreamHandle b_ = driver_->create_stream();
  std::vector<DomainId> domains_{kDefaultDomain};
  std::vector<Held> blocks_;
  std::uint64_t generation_ = 0;
  int damage_ = 0;
};

bool possible(Mode mode, CapabilityLevel level) {
  if (mode == Mode::redzones && kCheckLevel < 2) return false;
  if (mode == Mode::passthrough) return level != CapabilityLevel::no_vmm;
  return true;
}

/// Fails the first such call, the second, ... until there is none; how many failed in all. `undo`:
/// so does what would undo it.
std::uint64_t fail_each(Mode mode, CapabilityLevel level, DriverCall call, bool forever,
                        DriverCode code, bool undo = false) {
  std::uint64_t hits = 0;
  for (std::uint64_t n = 1;; ++n) {
    CAPTURE(static_cast<int>(mode), to_string(level), to_string(call), n, forever,
            static_cast<int>(code), undo);
    Program program(mode, level);
    program.driver().fail(call, n, forever, code);
    if (undo) program.driver().fail(DriverCall::unmap, n, false, DriverCode::unknown);
    program.run();
    const std::uint64_t faults = program.driver().faults_hit();
    program.finish();
    if (faults <= (undo ? 1u : 0u)) return hits;
    hits += faults;
  }
}

constexpr Mode kModes[] = {Mode::passthrough, Mode::redzones, Mode::always, Mode::cross_domain,
                           Mode::cross_domain_stitched};
constexpr CapabilityLevel kLevels[] = {CapabilityLevel::full, CapabilityLevel::no_aliases,
                                       CapabilityLevel::no_vmm};

}  // namespace

TEST_CASE("what helps to find errors survives any driver call that fails", "[fault][debug]") {
  const DriverCall call =
      GENERATE(DriverCall::create, DriverCall::map, DriverCall::set_access, DriverCall::unmap,
               DriverCall::release, DriverCall::event_record, DriverCall::event_query,
               DriverCall::stream_capturing, DriverCall::memset, DriverCall::read);
  const bool forever = GENERATE(false, true);
  const DriverCode code = GENERATE(DriverCode::unknown, DriverCode::out_of_memory);
  std::uint64_t hits = 0;
  for (const Mode mode : kModes) {
    for (const CapabilityLevel level : kLevels) {
      if (possible(mode, level)) hits += fail_each(mode, level, call, forever, code);
    }
  }
  CHECK((hits > 0 || (call == DriverCall::read && kCheckLevel < 2)));
}

TEST_CASE("a clearing that fails may be followed by an undo that fails", "[fault][debug]") {
  const Mode mode = GENERATE(Mode::cross_domain, Mode::cross_domain_stitched);
  const bool forever = GENERATE(false, true);
  CHECK(fail_each(mode, CapabilityLevel::full, DriverCall::memset, forever, DriverCode::unknown,
                  true) > 0);
}

}  // namespace bursar::test
