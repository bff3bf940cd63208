// SPDX-License-Identifier: Apache-2.0
// LiveTable against std::unordered_map: probing, growing, and removals that close the gap.
#include <bursar/block/live_table.hpp>

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "support/catch.hpp"

namespace bursar::test {
namespace {

std::unique_ptr<Block> block_at(std::uint64_t begin) {
  auto block = std::make_unique<Block>();
  block->begin = DeviceAddress{begin};
  return block;
}

}  // namespace

TEST_CASE("live_table finds a block by its first address only", "[block][live_table]") {
  const auto block = block_at(0x7000'0000);
  LiveTable table;
  table.insert(block.get());
  CHECK(table.find(DeviceAddress{0x7000'0000}) == block.get());
  CHECK(table.find(DeviceAddress{0x7000'0001}) == nullptr);
  CHECK(table.find(DeviceAddress{}) == nullptr);
  CHECK(table.size() == 1);
}

TEST_CASE("live_table still finds every other block after one is removed", "[block][live_table]") {
  // 48 entries in 64 places: chains that wrap around and homes that lie between others.
  std::vector<std::unique_ptr<Block>> blocks;
  for (std::uint64_t i = 0; i < 48; ++i) blocks.push_back(block_at((i + 1) << 9));
  for (const auto& gone : blocks) {
    LiveTable table;
    for (const auto& block : blocks) table.insert(block.get());
    table.erase(gone->begin);
    for (const auto& block : blocks) {
      REQUIRE(table.find(block->begin) == (block == gone ? nullptr : block.get()));
    }
  }
}

TEST_CASE("live_table agrees with unordered_map under random changes", "[block][live_table]") {
  std::mt19937 random(GENERATE(11u, 12u));
  std::vector<std::unique_ptr<Block>> blocks;
  for (std::uint64_t i = 0; i < 1000; ++i) blocks.push_back(block_at((i * 7 + 1) << 9));
  LiveTable table;
  std::unordered_map<std::uint64_t, Block*> model;
  for (int i = 0; i < 50'000; ++i) {
    Block* block = blocks[random() % blocks.size()].get();
    if (model.erase(block->begin.value) > 0) {
      table.erase(block->begin);
    } else {
      table.insert(block);
      model.emplace(block->begin.value, block);
    }
    const Block* asked = blocks[random() % blocks.size()].get();
    const auto expected = model.find(asked->begin.value);
    REQUIRE(table.find(asked->begin) == (expected == model.end() ? nullptr : expected->second));
  }
  CHECK(table.size() == model.size());
  CHECK(table.metadata() <= Bytes{4096 * 16});
}

}  // namespace bursar::test
