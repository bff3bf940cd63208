// SPDX-License-Identifier: Apache-2.0
// The killer of mutants: kept and random programs on a possibly broken library, until one of them
// is objected to. Prints who objected to what, and then exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/world.hpp"

using namespace bursar::test;

namespace {

constexpr std::uint32_t kSeeds = 150;
constexpr std::size_t kSteps = 600;

void examine(const std::string& name, std::span<const std::uint8_t> bytes) {
  const std::optional<Finding> finding = run_program(bytes);
  if (!finding) return;
  std::printf("%s: %s, %s\n", to_string(finding->by), name.c_str(), finding->text.c_str());
  std::fflush(stdout);
  std::_Exit(1);  // whatever the library would still do at exit, it is broken
}

void examine_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  examine(path.filename().string(), bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: killer CORPUS\n");
    return 2;
  }
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    kept.push_back(entry.path());
  }
  std::sort(kept.begin(), kept.end());
  for (const std::filesystem::path& path : kept) examine_file(path);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    examine("seed " + std::to_string(seed), random_bytes(seed, kSteps));
  }
  return 0;
}
