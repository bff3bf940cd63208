// SPDX-License-Identifier: Apache-2.0
// The deterministic half of the fuzzer: seeded programs, and every input kept in corpus/.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/world.hpp"
#include "support/catch.hpp"

using namespace bursar::test;

namespace {

std::string outcome(std::span<const std::uint8_t> bytes) {
  const std::optional<Finding> finding = run_program(bytes);
  return finding ? std::string(to_string(finding->by)) + ": " + finding->text : "nothing found";
}

}  // namespace

TEST_CASE("random programs leave nothing to object to", "[fuzz]") {
  constexpr std::uint32_t kSeeds = 120;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    CHECK(outcome(random_bytes(seed, 500)) == "nothing found");
  }
}

TEST_CASE("every kept input leaves nothing to object to", "[fuzz]") {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BURSAR_FUZZ_CORPUS)) {
    INFO(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    CHECK(outcome(bytes) == "nothing found");
    ++inputs;
  }
  CHECK(inputs >= 20);
}
