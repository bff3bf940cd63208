// SPDX-License-Identifier: Apache-2.0
// GrowthPolicy: when a domain may grow instead of reusing what is idle, and by how much at a time.
//
// Growing costs few driver calls, reusing costs a mapping for each piece. So a domain grows freely
// while it holds little more than it needs (the guard), and beyond that only where reusing would
// save too little for its mappings. How large new extents are is the other half of the same
// trade: large ones are cheap, small ones can be taken apart.
#pragma once

#include <bursar/allocator/allocator_options.hpp>
#include <bursar/core/bytes.hpp>

namespace bursar {
inline namespace v0 {

/// What a decision looks at.
struct GrowthState {
  Bytes peak{};        ///< most bytes of blocks that the domain has had live, the request included
  Bytes held{};        ///< bytes of its extents
  double streams = 1;  ///< how many streams share the memory (see effective_streams)
  Bytes attainable = Bytes::max();  ///< most it can hold: its limit, or what the device has left
  bool exhausted = false;           ///< growing has failed for this request

  /// Little is left of the device or of the domain's limit.
  bool tight() const { return exhausted || held >= attainable - attainable / 4; }
};

/// Immutable, so any thread may use it.
class BURSAR_EXPORT GrowthPolicy {
 public:
  /// Near the end of memory the choices of the preset `utilization` are in force where they are the
  /// thriftier ones.
  explicit GrowthPolicy(const AllocatorOptions& options);

  /// Holding `more` bytes is fine as it is; never once growing has failed.
  bool within_guard(const GrowthState& state, Bytes more) const;
  /// Holding `more` bytes is fine if reusing memory instead takes `maps` mappings more and saves
  /// only `saved` bytes.
  bool not_worth_it(const GrowthState& state, Bytes more, Bytes saved, std::size_t maps) const;
  /// A small block of `size` bytes should lie on idle memory of the zone of large ones, of which
  /// there is `idle`, rather than on a new page.
  bool borrows(const GrowthState& state, Bytes size, Bytes idle, Bytes page) const;
  /// Size of new extents for a block of `size` bytes: a power of two of at least a page.
  Bytes extent_size(const GrowthState& state, Bytes size, Bytes page) const;

 private:
  const AllocatorOptions& in_force(const GrowthState& state) const {
    return state.tight() ? tight_ : options_;
  }

  AllocatorOptions options_;
  AllocatorOptions tight_;
};

}  // namespace v0
}  // namespace bursar
