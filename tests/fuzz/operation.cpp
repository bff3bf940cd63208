// SPDX-License-Identifier: Apache-2.0
// The spelling of operations in bytes.
#include "fuzz/operation.hpp"

#include <array>
#include <random>

#include <bursar/core/check.hpp>

namespace bursar::test {

namespace {

/// Of 100 steps so many are of the kind: most of the work is what programs do.
struct Weight {
  Step step;
  unsigned of_100;
};
constexpr std::array kWeights{
    Weight{Step::allocate, 38},      Weight{Step::deallocate, 25},
    Weight{Step::record, 5},         Weight{Step::deallocate_elsewhere, 5},
    Weight{Step::launch, 6},         Weight{Step::advance, 2},
    Weight{Step::synchronize, 3},    Weight{Step::trim, 2},
    Weight{Step::replace_stream, 3}, Weight{Step::many_streams, 1},
    Weight{Step::inject_fault, 1},   Weight{Step::clear_faults, 2},
    Weight{Step::set_limit, 1},      Weight{Step::replace_domain, 1},
    Weight{Step::toggle_capture, 1}, Weight{Step::bad_pointer, 1},
    Weight{Step::interleave, 3}};

Step step_of(std::uint8_t byte) {
  unsigned left = byte % 100u;
  for (const Weight& weight : kWeights) {
    if (left < weight.of_100) return weight.step;
    left -= weight.of_100;
  }
  return Step::allocate;
}

Setup setup_of(std::uint8_t first, std::uint8_t second) {
  constexpr std::array kLevels{CapabilityLevel::full, CapabilityLevel::full,
                               CapabilityLevel::no_aliases, CapabilityLevel::no_vmm};
  constexpr std::array<std::uint32_t, 4> kBatches{1, 4, 8, 64};
  constexpr std::array<std::uint32_t, 4> kCapacities{16, 32, 48, 96};
  constexpr std::array<std::uint32_t, 4> kExtents{1, 4, 16, 16};
  Setup setup;
  setup.capability = kLevels[first & 3u];
  setup.backed = (first & 4u) != 0;
  setup.alias_moves = (first & 24u) != 24u;
  setup.stitch = (first & 32u) != 0;
  setup.few_views = (first & 64u) != 0;
  setup.share_small = (first & 128u) != 0 && (second & 128u) == 0;
  if ((first & 128u) != 0 && (second & 128u) != 0) {
    constexpr std::array kWatches{Watch::passthrough, Watch::redzones, Watch::cross_domain,
                                  Watch::always};
    setup.watch = kWatches[((second >> 6) & 1u) * 2 + ((first >> 6) & 1u)];
    // A device that cannot map has no passthrough, and redzones are read from real memory only.
    const bool vmm = setup.capability != CapabilityLevel::no_vmm;
    const bool zones = kCheckLevel >= 2 && setup.backed;
    if (setup.watch == Watch::passthrough && !vmm) setup.watch = Watch::none;
    if (setup.watch == Watch::redzones && !zones) setup.watch = Watch::cross_domain;
  }
  setup.fence_batch = kBatches[second & 3u];
  setup.capacity_pages = kCapacities[(second >> 2) & 3u];
  setup.max_extent_pages = kExtents[(second >> 4) & 3u];
  return setup;
}

}  // namespace

Program decode(std::span<const std::uint8_t> bytes) {
  Program program;
  if (bytes.size() < 2) return program;
  program.setup = setup_of(bytes[0], bytes[1]);
  for (std::size_t i = 2; i + 4 <= bytes.size(); i += 4) {
    program.operations.push_back({step_of(bytes[i]), bytes[i + 1], bytes[i + 2], bytes[i + 3]});
  }
  return program;
}

std::vector<std::uint8_t> random_bytes(std::uint32_t seed, std::size_t operations) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(2 + 4 * operations);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

}  // namespace bursar::test
