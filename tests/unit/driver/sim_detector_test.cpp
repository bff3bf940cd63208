// SPDX-License-Identifier: Apache-2.0
// The detector: accesses of two generations to the same bytes, ordered and not.
#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

SimOptions watched() {
  SimOptions options;
  options.detector = true;
  return options;
}

/// Streams a, b, c and a page of memory.
struct Scene : SimFixture {
  Scene() : SimFixture(watched()) {}

  std::size_t unordered() const { return count(driver, Violation::Kind::unordered_access); }

  StreamHandle a = driver.create_stream();
  StreamHandle b = driver.create_stream();
  StreamHandle c = driver.create_stream();
  ExtentHandle page = extent();
  VaRange at = mapped(page);
};

TEST_CASE("two blocks on two streams without order are reported", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("that virtual time has passed is no order", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.driver.advance_to(milliseconds(1000));
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("launching later on the host is no order", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  const EventHandle event = s.recorded(s.a);
  CHECK(s.driver.event_query(event) == not_ready);
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("two blocks on one stream are ordered", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.use(s.a, s.at, 2);
  CHECK(s.unordered() == 0);
}

TEST_CASE("two blocks in one launch are not ordered", "[driver][sim][detector]") {
  Scene s;
  const std::array accesses{SimAccess{s.at.begin, 512_B, 1}, SimAccess{s.at.begin, 512_B, 2}};
  s.driver.launch(s.a, milliseconds(1), accesses);
  CHECK(s.unordered() == 1);
}

TEST_CASE("one block may do anything with itself", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.use(s.b, s.at, 1);
  CHECK(s.unordered() == 0);
}

TEST_CASE("waiting for an event orders", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.must(s.driver.stream_wait({}, s.b, s.recorded(s.a)));
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 0);
}

TEST_CASE("an event orders only what came before its record", "[driver][sim][detector]") {
  Scene s;
  const EventHandle early = s.recorded(s.a);
  s.use(s.a, s.at, 1);
  s.must(s.driver.stream_wait({}, s.b, early));
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("waiting orders only what is launched after the wait", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  const EventHandle event = s.recorded(s.a);
  s.use(s.b, s.at, 2);
  s.must(s.driver.stream_wait({}, s.b, event));
  CHECK(s.unordered() == 1);
}

TEST_CASE("a host that has synchronized orders all streams", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  const bool whole_device = GENERATE(true, false);
  whole_device ? s.driver.synchronize_device() : s.driver.synchronize(s.a);
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 0);
}

TEST_CASE("synchronizing another stream orders nothing", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.driver.synchronize(s.c);
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("synchronizing a device orders its own work only", "[driver][sim][detector]") {
  SimOptions options = watched();
  options.devices = 2;
  SimFixture f(options);
  const VaRange at = f.mapped(f.extent());
  f.use(f.driver.create_stream({0}), at, 1);
  f.driver.synchronize_device({1});
  f.use(f.driver.create_stream({0}), at, 2);
  CHECK(count(f.driver, Violation::Kind::unordered_access) == 1);
}

TEST_CASE("an event query that says yes orders", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  const EventHandle event = s.recorded(s.a);
  s.driver.advance_to(milliseconds(10));
  REQUIRE(s.driver.event_query(event) == success);
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 0);
}

TEST_CASE("order hands on over three streams", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.must(s.driver.stream_wait({}, s.b, s.recorded(s.a)));
  const EventHandle on = s.recorded(s.b);
  SECTION("when each waits for the one before") {
    s.must(s.driver.stream_wait({}, s.c, on));
    s.use(s.c, s.at, 2);
    CHECK(s.unordered() == 0);
  }
  SECTION("through the host") {
    s.driver.synchronize(s.b);
    s.use(s.c, s.at, 2);
    CHECK(s.unordered() == 0);
  }
  SECTION("and not when the last link is missing") {
    s.use(s.c, s.at, 2);
    CHECK(s.unordered() == 1);
  }
}

TEST_CASE("a chain that leaves out one of two users is reported", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.use(s.b, s.at, 1);
  s.must(s.driver.stream_wait({}, s.c, s.recorded(s.a)));
  s.use(s.c, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("an older block counts though a newer one came between", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.must(s.driver.stream_wait({}, s.b, s.recorded(s.a)));
  s.use(s.b, s.at, 2);
  // The same block on c, which nothing orders after the first one.
  s.use(s.c, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("the block before counts also when one stream used both", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.use(s.a, s.at, 2);
  s.use(s.b, s.at, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("an old block that comes back is reported", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.use(s.a, s.at, 2);
  s.use(s.b, s.at, 1);
  CHECK(s.unordered() == 1);
}

TEST_CASE("the same bytes through two addresses are the same bytes", "[driver][sim][detector]") {
  Scene s;
  const VaRange alias = s.mapped(s.page);
  s.use(s.a, s.at, 1);
  SECTION("unordered") {
    s.use(s.b, alias, 2);
    CHECK(s.unordered() == 1);
  }
  SECTION("ordered by the stream") {
    s.use(s.a, alias, 2);
    CHECK(s.unordered() == 0);
  }
}

TEST_CASE("different bytes of one extent need no order", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1, 0_B, 512_B);
  s.use(s.b, s.at, 2, 512_B, 512_B);
  s.use(s.c, s.mapped(s.page), 3, 1024_B, 512_B);
  CHECK(s.unordered() == 0);
}

TEST_CASE("a part used by one block is not the whole it was cut from", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1, 0_B, 4_KiB);
  const EventHandle done = s.recorded(s.a);
  s.must(s.driver.stream_wait({}, s.b, done));
  s.must(s.driver.stream_wait({}, s.c, done));
  s.use(s.b, s.at, 2, 1_KiB, 1_KiB);
  s.use(s.c, s.at, 3, 0_B, 1_KiB);
  s.use(s.c, s.at, 4, 2_KiB, 2_KiB);
  CHECK(s.unordered() == 0);
}

TEST_CASE("one byte in common is enough, anywhere", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1, 1000_B, 1000_B);
  struct Part {
    Bytes offset, size;
  };
  // Its first byte, its last, one inside, all of it and more.
  const Part part =
      GENERATE(Part{0_B, 1001_B}, Part{1999_B, 100_B}, Part{1500_B, 1_B}, Part{0_B, 4000_B});
  s.use(s.b, s.at, 2, part.offset, part.size);
  CHECK(s.unordered() == 1);
}

TEST_CASE("memory at the same address in another extent is other memory",
          "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  s.driver.synchronize(s.a);
  s.must(s.driver.unmap(s.at));
  s.must(s.driver.map(s.at, s.extent()));
  s.must(s.driver.set_access(s.at, std::array{DeviceId{}}));
  s.use(s.b, s.at, 2);
  s.use(s.c, s.at, 2);
  CHECK(s.driver.violations().empty());
}

TEST_CASE("a block that spans extents is checked in each", "[driver][sim][detector]") {
  SimFixture f(watched());
  const StreamHandle a = f.driver.create_stream();
  const StreamHandle b = f.driver.create_stream();
  const VaRange at = f.range(4_MiB);
  const ExtentHandle second = f.extent();
  f.must(f.driver.map({at.begin, kPage}, f.extent()));
  f.must(f.driver.map({at.begin + kPage, kPage}, second));
  f.must(f.driver.set_access(at, std::array{DeviceId{}}));
  f.use(a, at, 1, 0_B, 4_MiB);
  f.use(b, f.mapped(second), 2);
  CHECK(count(f.driver, Violation::Kind::unordered_access) == 1);
}

TEST_CASE("a new stream behind a reused handle is another stream", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  SECTION("not ordered after the old one's work") {
    s.driver.destroy_stream(s.a);
    const StreamHandle again = s.driver.create_stream();
    REQUIRE(again == s.a);
    s.use(again, s.at, 2);
    CHECK(s.unordered() == 1);
  }
  SECTION("nor does waiting for it mean waiting for the old one") {
    s.driver.destroy_stream(s.a);
    const StreamHandle again = s.driver.create_stream();
    s.use(again, s.mapped(s.extent()), 2);
    s.must(s.driver.stream_wait({}, s.b, s.recorded(again)));
    s.use(s.b, s.at, 3);
    CHECK(s.unordered() == 1);
  }
  SECTION("unless the host has seen it complete") {
    s.driver.synchronize(s.a);
    s.driver.destroy_stream(s.a);
    const StreamHandle again = s.driver.create_stream();
    s.use(again, s.at, 2);
    s.use(s.b, s.at, 3);
    CHECK(s.unordered() == 1);  // 3 against 2, and nothing against 1
  }
}

TEST_CASE("a memset is work of its own", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 1);
  SECTION("on the same stream") {
    s.must(s.driver.memset({}, s.at.begin, 0, 4_KiB, s.a));
    s.use(s.a, s.at, 2);
    CHECK(s.unordered() == 0);
  }
  SECTION("on another one") {
    s.must(s.driver.memset({}, s.at.begin, 0, 4_KiB, s.b));
    CHECK(s.unordered() == 1);
  }
}

TEST_CASE("a read is ordered after what the host has seen, and before all that follows",
          "[driver][sim][detector]") {
  Scene s;
  std::array<std::byte, 64> out{};
  s.use(s.a, s.at, 1);
  SECTION("work still under way is not ordered") {
    (void)s.driver.read({}, s.at.begin, out);
    CHECK(s.unordered() == 1);
  }
  SECTION("work seen done is, and so is the next") {
    s.driver.synchronize(s.a);
    (void)s.driver.read({}, s.at.begin, out);
    s.use(s.b, s.at, 2);
    CHECK(s.unordered() == 0);
  }
}

TEST_CASE("plain memory is watched too", "[driver][sim][detector]") {
  Scene s;
  DeviceAddress address;
  s.must(s.driver.malloc_plain({}, kPage, address));
  s.use(s.a, {address, kPage}, 1);
  s.use(s.b, {address, kPage}, 2);
  CHECK(s.unordered() == 1);
}

TEST_CASE("a report names blocks, streams, bytes and extent", "[driver][sim][detector]") {
  Scene s;
  s.use(s.a, s.at, 11, 512_B, 512_B);
  s.use(s.b, s.at, 12, 0_B, 1024_B);
  REQUIRE(s.driver.violations().size() == 1);
  StreamId a{};
  StreamId b{};
  s.must(s.driver.stream_id({}, s.a, a));
  s.must(s.driver.stream_id({}, s.b, b));
  CHECK(s.driver.violations()[0].text == "block 12 on stream " + std::to_string(b.value) +
                                             " and block 11 on stream " + std::to_string(a.value) +
                                             " touch bytes [0x200, 0x400) of extent " +
                                             std::to_string(s.page.value) + " unordered");
}

TEST_CASE("without the detector nothing is reported", "[driver][sim]") {
  SimFixture f;
  const VaRange at = f.mapped(f.extent());
  f.use(f.driver.create_stream(), at, 1);
  f.use(f.driver.create_stream(), at, 2);
  f.must(f.driver.unmap(at));
  CHECK(f.driver.violations().empty());
}

}  // namespace
}  // namespace bursar::test
