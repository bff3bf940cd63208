// SPDX-License-Identifier: Apache-2.0
// A program that runs ahead of the GPU: idle memory moves and is stitched behind work that will run
// for long, nothing waits, and no mapping goes before the work that may use it is done.
#include <vector>

#include "support/scatter.hpp"
#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

constexpr unsigned kBlocks = 50;  // asked for behind each long piece of work
constexpr std::int64_t kLong = 200;

/// The clock of the device, like everything here, is virtual: figures are exact.
class AheadFixture : public AllocatorFixture {
 public:
  explicit AheadFixture(const Scatter& scatter)
      : AllocatorFixture(Shape{}, scatter.options, 16384_MiB), scatter_(scatter) {
    get(512_B, b);  // a second stream, so that fences matter
    for (unsigned i = 0; i < kBlocks * scatter_.holes; ++i) {
      holes_.push_back(get(scatter_.hole));
      get(scatter_.separator);
    }
  }

  /// Work of 200 ms comes next on the stream; the holes are used after it, then freed.
  void free_holes_behind_work() {
    work(a, kLong);
    for (void* hole : holes_) {
      use(a, hole, scatter_.hole, ++generation_, 0);
      free(hole);
    }
    done_ = driver->now() + milliseconds(kLong);
  }
  void* next() {
    void* block = get(scatter_.block);
    use(a, block, scatter_.block, ++generation_, 0);
    return block;
  }
  bool behind() const { return driver->now() < done_; }
  std::uint64_t mapped() const { return calls(DriverCall::map); }

 protected:
  Scatter scatter_;
  std::vector<void*> holes_;
  Duration done_{};
  std::uint64_t generation_ = 0;
};

Scatter any_scatter() {
  return scatter(GENERATE(Way::move, Way::stitch), GENERATE(2_MiB, 16_MiB, 64_MiB));
}

}  // namespace

TEST_CASE("behind unfinished work blocks are had for the price of their mappings and no more",
          "[allocator][ahead]") {
  const Scatter scatter = any_scatter();
  AheadFixture f(scatter);
  f.free_holes_behind_work();
  const std::uint64_t created = f.calls(DriverCall::create);
  const Bytes reserved = f.stats().reserved;
  for (unsigned i = 0; i < kBlocks; ++i) {
    const std::uint64_t mapped = f.mapped();
    const Duration begin = f.driver->now();
    f.next();
    const auto extents = static_cast<std::int64_t>(f.mapped() - mapped);
    REQUIRE(extents == scatter.extents);
    REQUIRE(f.driver->now() - begin <= microseconds(200 + 60 * extents));
  }
  CHECK(f.behind());
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.stats().reserved == reserved);
  CHECK(f.allocator.validate().ok());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("no mapping goes while the work that may use it is not done", "[allocator][ahead]") {
  AheadFixture f(any_scatter());
  f.free_holes_behind_work();
  const std::size_t before = f.driver->mapping_count();
  const std::uint64_t mapped = f.mapped();
  for (unsigned i = 0; i < kBlocks; ++i) f.next();
  for (int i = 0; i < 10; ++i) {
    f.get(512_B);  // names the stream: whatever may go would go
    f.look();
  }
  CHECK(f.behind());
  CHECK(f.calls(DriverCall::unmap) == 0);
  CHECK(f.driver->mapping_count() == before + (f.mapped() - mapped));
  CHECK(f.driver->violations().empty());
}

TEST_CASE("what moved extents left behind goes once the work is done", "[allocator][ahead]") {
  AheadFixture f(scatter(Way::move, 16_MiB));
  f.free_holes_behind_work();
  const std::size_t before = f.driver->mapping_count();
  for (unsigned i = 0; i < kBlocks; ++i) f.next();
  CHECK(f.driver->mapping_count() == before + kBlocks * 8);
  f.get(512_B);
  f.pass(kLong);
  f.look();
  CHECK(f.driver->mapping_count() == before);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("memory moves on again and again behind one unfinished piece of work after another",
          "[allocator][ahead]") {
  const Scatter scatter = test::scatter(GENERATE(Way::move, Way::stitch), 16_MiB);
  AheadFixture f(scatter);
  f.free_holes_behind_work();
  const std::uint64_t created = f.calls(DriverCall::create);
  std::vector<void*> blocks;
  for (unsigned i = 0; i < kBlocks; ++i) blocks.push_back(f.next());
  for (unsigned round = 0; round < 4; ++round) {
    f.work(f.a, kLong);
    // Every other block, so that larger ones must be put together from what lies apart.
    std::vector<void*> kept;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 0) f.free(blocks[i]);
      if (i % 2 != 0) kept.push_back(blocks[i]);
    }
    const Bytes larger = scatter.block * (std::uint64_t{2} << round);
    const std::uint64_t count = scatter.block * (blocks.size() - kept.size()) / larger;
    for (std::uint64_t i = 0; i < count; ++i) {
      void* block = f.get(larger);
      f.use(f.a, block, larger, 1'000'000 + round * 1000 + i, 0);
    }
    blocks = kept;
  }
  CHECK(f.behind());
  CHECK(f.calls(DriverCall::unmap) == 0);
  CHECK(f.calls(DriverCall::create) <= created + 1);
  CHECK(f.allocator.validate().ok());
  CHECK(f.driver->violations().empty());
}

}  // namespace bursar::test
