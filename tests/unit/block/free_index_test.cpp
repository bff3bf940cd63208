// SPDX-License-Identifier: Apache-2.0
// FreeIndex against a plain sorted map: what it finds, in which order, and that it stays a treap.
#include <bursar/block/free_index.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "support/catch.hpp"

namespace bursar::test {
namespace {

Block block_at(std::uint64_t begin, std::uint64_t size) {
  Block block;
  block.begin = DeviceAddress{begin};
  block.size = Bytes{size};
  return block;
}

std::vector<std::uint64_t> begins(const FreeIndex& index, Bytes least, bool ascending) {
  std::vector<std::uint64_t> seen;
  const auto note = [&](const Block* block) {
    seen.push_back(block->begin.value);
    return true;
  };
  ascending ? index.ascend(least, note) : index.descend(least, note);
  return seen;
}

/// Blocks of 512 B units at fixed places, each in the index or not.
class RandomIndex {
 public:
  explicit RandomIndex(unsigned seed) : random_(seed) {
    for (std::uint64_t i = 0; i < 200; ++i) {
      blocks_.push_back(block_at((i + 1) * 0x10000, (1 + random_() % 64) * 512));
    }
  }
  void step() {
    Block& block = blocks_[random_() % blocks_.size()];
    if (model_.erase(block.begin.value) > 0) {
      index_.erase(&block);
    } else {
      index_.insert(&block);
      model_.emplace(block.begin.value, &block);
    }
  }
  Block* expected_fit(Bytes size) const {
    for (const auto& [begin, block] : model_) {
      if (block->size >= size) return block;
    }
    return nullptr;
  }
  std::vector<std::uint64_t> expected_begins(Bytes least) const {
    std::vector<std::uint64_t> all;
    for (const auto& [begin, block] : model_) {
      if (block->size >= least) all.push_back(begin);
    }
    return all;
  }
  Bytes any_size() { return Bytes{random_() % 40000}; }
  const FreeIndex& index() const { return index_; }

 private:
  std::mt19937 random_;
  std::vector<Block> blocks_;
  std::map<std::uint64_t, Block*> model_;
  FreeIndex index_;
};

}  // namespace

TEST_CASE("free_index returns the lowest address that is large enough", "[block][free_index]") {
  Block small = block_at(0x1000, 512);
  Block far = block_at(0x9000, 4096);
  Block near = block_at(0x5000, 2048);
  FreeIndex index;
  for (Block* block : {&far, &small, &near}) index.insert(block);
  CHECK(index.lowest_fit(Bytes{512}) == &small);
  CHECK(index.lowest_fit(Bytes{513}) == &near);
  CHECK(index.lowest_fit(Bytes{2049}) == &far);
  CHECK(index.lowest_fit(Bytes{4097}) == nullptr);
  CHECK(index.largest() == Bytes{4096});
}

TEST_CASE("free_index forgets what was erased", "[block][free_index]") {
  Block one = block_at(0x1000, 512);
  FreeIndex index;
  index.insert(&one);
  CHECK(index.contains(&one));
  index.erase(&one);
  CHECK_FALSE(index.contains(&one));
  CHECK(index.empty());
  CHECK(index.largest() == Bytes{});
}

TEST_CASE("free_index stops a walk when the visitor has seen enough", "[block][free_index]") {
  Block a = block_at(0x1000, 512);
  Block b = block_at(0x2000, 512);
  FreeIndex index;
  index.insert(&a);
  index.insert(&b);
  std::vector<Block*> seen;
  const auto once = [&](Block* block) {
    seen.push_back(block);
    return false;
  };
  index.ascend(Bytes{}, once);
  index.descend(Bytes{}, once);
  CHECK(seen == std::vector<Block*>{&a, &b});
}

TEST_CASE("free_index agrees with a sorted map under random changes", "[block][free_index]") {
  RandomIndex random(GENERATE(1u, 2u, 3u));
  for (int i = 0; i < 3000; ++i) {
    random.step();
    const Bytes size = random.any_size();
    REQUIRE(random.index().lowest_fit(size) == random.expected_fit(size));
    if (i % 100 != 0) continue;
    std::vector<std::uint64_t> expected = random.expected_begins(size);
    REQUIRE(begins(random.index(), size, true) == expected);
    std::reverse(expected.begin(), expected.end());
    REQUIRE(begins(random.index(), size, false) == expected);
    REQUIRE(random.index().validate());
  }
}

TEST_CASE("free_index sees that a maximum or the order is broken", "[block][free_index]") {
  Block a = block_at(0x1000, 512);
  Block b = block_at(0x2000, 512);
  FreeIndex index;
  index.insert(&a);
  index.insert(&b);
  REQUIRE(index.validate());
  const bool resized = GENERATE(true, false);
  resized ? void(a.size = Bytes{1024}) : void(a.begin = DeviceAddress{0x2100});
  CHECK_FALSE(index.validate());
}

}  // namespace bursar::test
