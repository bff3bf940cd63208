// SPDX-License-Identifier: Apache-2.0
// Redzones on a real device: what a kernel writes beside its block is reported.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/core/log.hpp>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;
using namespace bursar::literals;

namespace {

constexpr Bytes kWord{4};

/// An allocator with redzones and what the library logs.
class Watched {
 public:
  Watched() : allocator(gpu_driver(), with_redzones()) {
    set_log_sink([this](LogLevel, std::string_view line) { lines.emplace_back(line); });
  }
  ~Watched() { set_log_sink({}); }

  char* get(Bytes size, BlockFlags flags = BlockFlags::none) {
    return static_cast<char*>(
        allocator.allocate(size.count, {.stream = stream.handle(), .flags = flags}));
  }
  /// Frees the block and sees its redzones compared.
  void give_back(void* block) {
    allocator.deallocate(block);
    const StreamRef streams[] = {stream.handle()};
    for (int i = 0; i < 100 && allocator.stats().pending > Bytes{}; ++i) {
      (void)allocator.trim(Bytes::max(), {}, streams);
      stream.synchronize();
    }
    REQUIRE(allocator.stats().pending == Bytes{});
  }

  CachingAllocator allocator;
  const Stream stream;
  std::vector<std::string> lines;

 private:
  static AllocatorOptions with_redzones() {
    AllocatorOptions options;
    options.redzones = true;
    return options;
  }
};

}  // namespace

TEST_CASE("a kernel that writes past its block's end is reported", "[allocator][cuda][gpu]") {
  Watched w;
  const Bytes size = GENERATE(1000_B, 300_KiB, 5_MiB);
  char* block = w.get(size);
  fill(block, size + kWord, 1, w.stream);
  w.give_back(block);
  REQUIRE(w.lines.size() == 1);
  CHECK_THAT(w.lines[0], contains("bytes 1 to 4 past its end"));
  CHECK_THAT(w.lines[0], contains("of " + std::to_string(size.count) + " bytes"));
  CHECK(w.allocator.stats().damaged_blocks == 1);
}

TEST_CASE("a kernel that writes before its block's begin is reported", "[allocator][cuda][gpu]") {
  Watched w;
  const Bytes size = GENERATE(1000_B, 300_KiB, 5_MiB);
  char* block = w.get(size);
  fill(block - kWord.count, kWord, 1, w.stream);
  w.give_back(block);
  REQUIRE(w.lines.size() == 1);
  CHECK_THAT(w.lines[0], contains("bytes 4 to 1 before its begin"));
  CHECK(w.allocator.stats().damaged_blocks == 1);
}

TEST_CASE("kernels that keep to their blocks are not reported", "[allocator][cuda][gpu]") {
  Watched w;
  std::mt19937 random(7);
  MismatchCounter mismatches;
  std::vector<std::pair<char*, Bytes>> blocks;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const Bytes size = kWord * (1 + random() % (1u << (random() % 21)));
    char* block = w.get(size, i % 50 == 0 ? BlockFlags::pinned : BlockFlags::none);
    fill(block, size, i, w.stream);
    mismatches.expect(block, size, i, w.stream);
    blocks.emplace_back(block, size);
    if (blocks.size() > 20) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      w.allocator.deallocate(blocks.back().first);
      blocks.pop_back();
    }
  }
  while (!blocks.empty()) {
    w.give_back(blocks.back().first);
    blocks.pop_back();
  }
  CHECK(mismatches.total() == 0);
  CHECK(w.lines.empty());
  CHECK(w.allocator.validate().ok());
}
