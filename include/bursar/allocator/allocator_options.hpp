// SPDX-License-Identifier: Apache-2.0
// AllocatorOptions: every policy knob, in one struct with defaults, and the one parser of
// BURSAR_CONF.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>
#include <bursar/core/result.hpp>

namespace bursar {
inline namespace v0 {

/// Whose bytes may still be seen in memory that is handed out.
enum class Scrub : std::uint8_t {
  never,         ///< whoever's they were
  cross_domain,  ///< the own domain's: what a domain comes to hold is cleared first, as a whole
  always,        ///< nobody's: every block is cleared as a whole when it is handed out
};

struct AllocatorOptions {
  /// Upper bound of one extent made for growth. A power of two, at least the device's page.
  Bytes max_extent{Bytes{128ull << 20}};
  /// Growth takes extents of about (peak of live bytes) / this: more means smaller extents.
  std::uint32_t growth_divisor = 112;
  /// Or of (size of the block) / this, where that is more: large blocks get large extents.
  std::uint32_t extent_share = 8;
  /// Smaller blocks are not stitched: their holes are filled by moving idle extents.
  Bytes stitch_limit{Bytes{2ull << 20}};
  /// Views kept for each domain and device; the oldest unused go first.
  std::uint32_t max_views = 8192;
  /// While no more than this many thousandths over the peak of live bytes are held, growing is
  /// preferred to anything that needs more mappings.
  std::uint32_t guard = 10;
  /// The same, where stitching would save too little for its mappings.
  std::uint32_t wide_guard = 13;
  /// What one more mapping must save, in hundred-thousandths of the peak of live bytes.
  std::uint32_t map_price = 150;
  /// Blocks smaller than this live in a zone of their own, in one-page extents.
  Bytes small_limit{Bytes{2ull << 20}};
  /// Where the guard does not allow a new page, blocks of that zone smaller than this may lie on
  /// idle memory of the other, which holds it together for as long as they live.
  Bytes borrow_limit{};
  /// Map an idle extent at its new place at once and take the old mapping away when its work is
  /// done, where the device can map an extent twice. Off: idle extents whose work is not done stay.
  bool alias_moves = true;
  /// A fence is due after so many frees on a stream, or, where there are several streams, so many
  /// bytes: what is not fenced yet cannot serve other streams.
  std::uint32_t fence_batch = 64;
  Bytes fence_bytes{Bytes{48ull << 20}};
  /// Each thread keeps what it frees, up to 1 MiB a block and 2 MiB in all, for its own next
  /// requests of that very size, stream and domain, and needs no lock for them. Others take it from
  /// there before anything is created. Does nothing with `passthrough`, `redzones` or scrub
  /// `always`.
  bool thread_caches = true;
  /// How long an allocation may wait for GPU work whose memory would serve it, before it fails.
  Duration wait_limit = milliseconds(2000);
  /// Devices that get access to all of this allocator's memory besides the one it lies on. The
  /// driver must allow them to (cuDeviceCanAccessPeer), else mapping fails.
  std::vector<DeviceId> peers{};
  /// Virtual addresses to reserve at a time, as a multiple of the device's memory.
  std::uint32_t address_factor = 4;
  /// Clears memory before it is used again, in the order of the requesting stream.
  Scrub scrub = Scrub::never;
  /// For compute-sanitizer: every block is a mapping of its own between unmapped pages and ends
  /// where the mapping ends, down to its alignment (of at least 16). Nothing is cached, and the
  /// addresses of a freed block are used again as late as possible. Refused where a device has no
  /// virtual memory management.
  bool passthrough = false;
  /// Finds what was written just before or behind a block: see docs/debugging.md. Freed memory
  /// serves again only when its fence has passed and its redzones were compared. Needs a library
  /// built with check level 2 or 3; not together with `passthrough`.
  bool redzones = false;
};

/// The policy fields of a preset on top of `base`: `balanced` (the defaults), `time` (fewer driver
/// calls for a little more memory) or `utilization` (the other way round). invalid_argument for any
/// other name.
BURSAR_EXPORT result<AllocatorOptions> preset_options(std::string_view name,
                                                      AllocatorOptions base = {});

/// invalid_argument when fields contradict each other or are out of range.
BURSAR_EXPORT result<void> check_options(const AllocatorOptions& options);

/// Parses "key:value,key:value" on top of `base`, in order. Keys are the fields' names (but
/// `peers`), and `preset` for preset_options; sizes as `32MiB`, durations in ms, switches `on` or
/// `off`. An unknown key, a bad value or a broken combination is `invalid_argument`.
BURSAR_EXPORT result<AllocatorOptions> parse_options(std::string_view text,
                                                     AllocatorOptions base = {});

/// parse_options of the environment variable BURSAR_CONF: the only place that reads it.
BURSAR_EXPORT result<AllocatorOptions> options_from_environment();

}  // namespace v0
}  // namespace bursar
