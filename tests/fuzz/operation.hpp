// SPDX-License-Identifier: Apache-2.0
// Operation: one step of random work, and how a string of bytes spells a list of them.
//
// Every string spells a valid list, so a fuzzer may change any byte, and a kept input is a test for
// ever: two bytes choose device and options, then each four are a step and its three arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <bursar/driver/driver_types.hpp>

namespace bursar::test {

enum class Step : std::uint8_t {
  allocate,
  deallocate,            ///< on the home stream
  deallocate_elsewhere,  ///< on another stream, ordered after home
  record,                ///< another stream, ordered after home, uses the block too
  launch,                ///< work of the home stream on the block
  advance,               ///< the clock
  synchronize,           ///< the host waits for a stream
  trim,
  replace_stream,  ///< retired, destroyed, and a new one made, which gets the same handle
  many_streams,    ///< more streams than the allocator likes to remember
  inject_fault,
  clear_faults,
  set_limit,
  replace_domain,  ///< closed, and a new one made
  toggle_capture,
  bad_pointer,  ///< what is no live block is given back
  interleave,   ///< the next step happens while another thread would be inside the driver
};

struct Operation {
  Step step{};
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  std::uint8_t c = 0;
};

/// What the allocator does beside its work.
enum class Watch : std::uint8_t { none, passthrough, redzones, cross_domain, always };

struct Setup {
  CapabilityLevel capability = CapabilityLevel::full;
  bool backed = false;  ///< real memory, small pages; blocks are filled and verified
  bool alias_moves = true;
  bool stitch = false;  ///< blocks of two pages and more may be stitched; else all are moved for
  bool share_small = false;  ///< blocks below a page are small; the zones share what is idle
  Watch watch = Watch::none;
  bool few_views = false;  ///< one view at most is kept, so that views go all the time
  std::uint32_t fence_batch = 8;
  std::uint32_t capacity_pages = 48;
  std::uint32_t max_extent_pages = 16;
};

struct Program {
  Setup setup;
  std::vector<Operation> operations;
};

Program decode(std::span<const std::uint8_t> bytes);

/// The spelling of `operations` random steps.
std::vector<std::uint8_t> random_bytes(std::uint32_t seed, std::size_t operations);

}  // namespace bursar::test
