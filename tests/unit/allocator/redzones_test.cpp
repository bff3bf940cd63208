// SPDX-License-Identifier: Apache-2.0
// Redzones: what is written beside a block is reported when the block is given back.
#include <mutex>
#include <string>
#include <vector>

#include <bursar/core/log.hpp>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

AllocatorOptions redzones() {
  AllocatorOptions options = moving();
  options.redzones = true;
  return options;
}

/// Keeps what the library logs.
class Log {
 public:
  Log() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      (level == LogLevel::error ? errors : others).emplace_back(line);
    });
  }
  ~Log() { set_log_sink({}); }
  std::vector<std::string> errors;
  std::vector<std::string> others;
};

struct ZoneFixture : AllocatorFixture {
  explicit ZoneFixture(Shape shape, const AllocatorOptions& options = redzones())
      : AllocatorFixture(real(shape), options) {}

  static Shape real(Shape shape) {
    shape.backed = true;
    return shape;
  }
  /// Frees the block and sees its work done.
  void give_back(void* block) {
    free(block);
    fence();
    look();
  }
  Log log;
};

std::string name_of(const void* block) {
  char text[32];
  std::snprintf(text, sizeof text, "%#llx",
                static_cast<unsigned long long>(to_address(block).value));
  return text;
}

}  // namespace

TEST_CASE("a byte written past a block's end is reported", "[allocator][contract][redzones]") {
  ZoneFixture f(any_shape());
  void* block = f.get(1000_B);
  bytes_of(block)[1000] = 0;
  f.give_back(block);
  REQUIRE(f.log.errors.size() == 1);
  CHECK_THAT(f.log.errors[0], contains("bytes 1 to 1 past its end"));
  CHECK_THAT(f.log.errors[0], contains(name_of(block) + " of 1000 bytes"));
  CHECK_THAT(f.log.errors[0],
             contains("stream " + std::to_string(f.allocator.stream(f.a, f.device)->id.value)));
  CHECK(f.stats().damaged_blocks == 1);
  CHECK(f.stats(kDefaultDomain).damaged_blocks == 1);
}

TEST_CASE("a byte written before a block's begin is reported", "[allocator][contract][redzones]") {
  ZoneFixture f(any_shape());
  void* block = f.get(3_MiB);
  bytes_of(block)[-1] = 0;
  bytes_of(block)[-4] = 0;
  f.give_back(block);
  REQUIRE(f.log.errors.size() == 1);
  CHECK_THAT(f.log.errors[0], contains("bytes 4 to 1 before its begin"));
}

TEST_CASE("damage on both sides is one report", "[allocator][redzones]") {
  ZoneFixture f({});
  void* block = f.get(512_B);
  bytes_of(block)[-512] = 1;
  bytes_of(block)[512 + 511] = 1;
  f.give_back(block);
  REQUIRE(f.log.errors.size() == 1);
  CHECK_THAT(f.log.errors[0], contains("bytes 512 to 512 before its begin and bytes 512 to 512"));
  CHECK(f.stats().damaged_blocks == 1);
}

TEST_CASE("a block that is used as it should be is not reported",
          "[allocator][contract][redzones]") {
  ZoneFixture f(any_shape());
  for (const Bytes size : {1_B, 511_B, 512_B, 1000_B, 700_KiB, 5_MiB}) {
    for (int round = 0; round < 3; ++round) {
      void* block = f.get(size);
      CHECK(f.allocator.usable_size(block) == size.count);
      std::memset(block, round, size.count);
      f.give_back(block);
    }
  }
  CHECK(f.log.errors.empty());
  CHECK(f.log.others.empty());
  CHECK(f.stats().damaged_blocks == 0);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("every kind of block has redzones", "[allocator][redzones]") {
  AllocatorOptions options = redzones();
  options.stitch_limit = 2_MiB;
  options.guard = options.wide_guard = options.map_price = 0;
  ZoneFixture f({}, options);
  std::vector<void*> pieces;
  for (int i = 0; i < 8; ++i) pieces.push_back(f.get(4_MiB));
  for (std::size_t i = 0; i < 8; i += 2) f.give_back(pieces[i]);

  struct Kind {
    std::size_t size = 1000;
    BlockFlags flags = BlockFlags::none;
    Bytes alignment = 1_B;
    bool in_view = false;
  };
  const auto [size, flags, alignment, in_view] =
      GENERATE(Kind{}, Kind{3}, Kind{1000, BlockFlags::pinned}, Kind{1000, BlockFlags::none, 8_MiB},
               Kind{(12_MiB).count, BlockFlags::none, 1_B, true});
  AllocateOptions kind = f.with(flags);
  kind.alignment = alignment;
  void* block = f.allocator.allocate(size, kind);
  CHECK(to_address(block).value % alignment.count == 0);
  const std::size_t extents = f.allocator.snapshot().extents.size();
  CHECK((f.driver->mapping_count() > extents) == in_view);
  bytes_of(block)[size] = 0;
  bytes_of(block)[-1] = 0;
  f.give_back(block);
  REQUIRE(f.log.errors.size() == 1);
  CHECK_THAT(f.log.errors[0], contains("1 to 1 before its begin and bytes 1 to 1 past its end"));
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a shareable block has a redzone behind it and begins with its extent",
          "[allocator][redzones]") {
  ZoneFixture f({});
  void* block = f.allocator.allocate(1000, f.with(BlockFlags::shareable));
  CHECK(to_address(block).value % (2_MiB).count == 0);
  bytes_of(block)[1000] = 0;
  f.give_back(block);
  REQUIRE(f.log.errors.size() == 1);
  CHECK_THAT(f.log.errors[0], contains("bytes 1 to 1 past its end"));
}

TEST_CASE("a freed block with redzones is pending until its fence, then idle",
          "[allocator][redzones]") {
  ZoneFixture f(any_shape());
  void* block = f.get(1000_B);
  f.use(f.a, block, 1000_B, 1, 10);
  f.free(block);
  f.fence();
  CHECK(f.stats().pending > 0_B);
  CHECK(f.get(1000_B) != block);
  f.pass(11);
  f.look();
  CHECK(f.stats().pending == 0_B);
  CHECK(f.get(1000_B) == block);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("redzones are compared after the uses of recorded streams too", "[allocator][redzones]") {
  ZoneFixture f(any_shape());
  void* block = f.get(1000_B);
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.use(f.b, block, 1000_B, 1, 10);
  f.free(block);
  f.fence();
  bytes_of(block)[1001] = 0;  // late, as a kernel of the recorded stream would
  f.pass(11);
  f.fence();
  f.look();
  REQUIRE(f.log.errors.size() == 1);
  CHECK_THAT(f.log.errors[0], contains("bytes 2 to 2 past its end"));
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a full device waits until redzones can be compared", "[allocator][redzones]") {
  ZoneFixture f({});
  void* block = f.get(250_MiB);
  f.use(f.a, block, 250_MiB, 1, 10);
  f.free(block);
  CHECK(f.ask(240_MiB, f.a).ok());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a block whose redzones cannot be filled is not handed out, and not lost",
          "[allocator][redzones]") {
  ZoneFixture f(any_shape());
  const std::uint64_t nth = GENERATE(1u, 2u);
  f.driver->fail(DriverCall::memset, nth, false, DriverCode::unknown);
  CHECK(kind_of(f.ask(1000_B, f.a)) == ErrorKind::driver_fault);
  CHECK(f.stats().live_blocks == 0);
  CHECK(f.stats().pending == 0_B);
  CHECK(f.log.errors.empty());
}

TEST_CASE("redzones that cannot be read are a warning, and the block is idle",
          "[allocator][redzones]") {
  ZoneFixture f(any_shape());
  void* block = f.get(1000_B);
  f.driver->fail(DriverCall::read, 1, false, DriverCode::unknown);
  f.give_back(block);
  CHECK(f.log.errors.empty());
  REQUIRE(f.log.others.size() == 1);
  CHECK_THAT(f.log.others[0], contains("could not be read"));
  CHECK(f.stats().damaged_blocks == 0);
  CHECK(f.get(1000_B) == block);
}

TEST_CASE("a block handed out during a capture has no redzones", "[allocator][redzones]") {
  ZoneFixture f({});
  f.give_back(f.get(1000_B));
  f.resolve_streams();
  f.driver->begin_capture(f.a);
  void* block = f.get(1000_B);
  CHECK(f.driver->end_capture(f.a));
  bytes_of(block)[-1] = 0;  // what a graph would do when it runs cannot be told
  f.give_back(block);
  CHECK(f.log.errors.empty());
}

TEST_CASE("when the allocator ends every block that is left is compared", "[allocator][redzones]") {
  Log log;
  SimOptions device = sim_options({CapabilityLevel::full, 1, true}, 64_MiB);
  const auto driver = std::make_shared<SimDriver>(device);
  {
    CachingAllocator allocator(driver, redzones());
    void* freed = allocator.allocate(1000);
    void* live = allocator.allocate(2000);
    bytes_of(freed)[1000] = 0;
    bytes_of(live)[2000] = 0;
    allocator.deallocate(freed);
    driver->synchronize_device();
  }
  CHECK(log.errors.size() == 2);
  CHECK(nothing_left(*driver));
  CHECK(driver->violations().empty());
}

TEST_CASE("redzones and scrub=always go together", "[allocator][redzones][scrub]") {
  AllocatorOptions options = redzones();
  options.scrub = Scrub::always;
  ZoneFixture f(any_shape(), options);
  for (int round = 0; round < 3; ++round) {
    void* block = f.get(1000_B);
    CHECK(all_are(block, 1000, 0));
    std::memset(block, 1, 1000);
    f.give_back(block);
  }
  CHECK(f.log.errors.empty());
}

}  // namespace bursar::test
