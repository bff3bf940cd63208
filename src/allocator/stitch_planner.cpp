// SPDX-License-Identifier: Apache-2.0
// Choosing the pieces of a stitched block.
#include <bursar/allocator/stitch_planner.hpp>

#include <algorithm>
#include <tuple>

namespace bursar {
inline namespace v0 {

namespace {
/// So many free ends are tried as the begin of a block.
constexpr std::size_t kMostHeads = 64;
}  // namespace

/// The idle parts of a zone's extents.
void StitchPlanner::add_parts(const BlockMap& home, StreamSlot slot, Parts& parts) {
  const auto idle_for = [slot](const Block* block) {
    return block != nullptr && block->state == BlockState::idle && BlockMap::usable(*block, slot);
  };
  const auto cut_at_extents = [&](const VaRange& run, const AddressRange& range) {
    for (DeviceAddress at = run.begin; at < run.end();) {
      Extent* extent = range.extent_at(at);
      const DeviceAddress begin = extent->mapped_at;
      const DeviceAddress end = begin + extent->size;
      if (at == begin && end <= run.end()) {
        parts.wholes.push_back({extent, extent->size});
      } else if (at == begin) {
        parts.prefixes.push_back({extent, run.end() - begin});
      } else if (end <= run.end()) {
        parts.suffixes.push_back({extent, end - at});
      }
      at = end;
    }
  };
  for (const StreamSlot index : {kAnyStream, slot}) {
    home.idle(index).ascend(Bytes{0}, [&](Block* block) {
      if (idle_for(block->prev)) return true;  // its run was seen from its begin
      Block* last = block;
      while (idle_for(last->next)) last = last->next;
      cut_at_extents({block->begin, last->end() - block->begin}, *block->range);
      return true;
    });
    if (slot == kAnyStream) break;
  }
}

StitchPlanner::Parts StitchPlanner::find_parts(const Zones& homes, StreamSlot slot,
                                               bool use_small) {
  Parts parts;
  add_parts(homes.large, slot, parts);
  if (use_small) add_parts(homes.small, slot, parts);
  const auto larger = [](const Part& a, const Part& b) {
    return std::tuple(b.size, a.extent->mapped_at) < std::tuple(a.size, b.extent->mapped_at);
  };
  std::sort(parts.wholes.begin(), parts.wholes.end(), larger);
  std::sort(parts.suffixes.begin(), parts.suffixes.end(), larger);
  std::sort(parts.prefixes.begin(), parts.prefixes.end(), [](const Part& a, const Part& b) {
    return std::tuple(a.size, a.extent->mapped_at) < std::tuple(b.size, b.extent->mapped_at);
  });
  return parts;
}

void StitchPlanner::add_new(Stitch& stitch, Bytes bytes, Bytes used, Bytes extent) const {
  stitch.new_bytes += bytes;
  while (bytes > Bytes{}) {
    const Bytes size = std::min(bytes, extent);
    const Bytes taken = std::min(size, used);
    stitch.pieces.push_back({nullptr, size, Bytes{}, taken});
    bytes -= size;
    used -= taken;
  }
}

Stitch StitchPlanner::build(const Parts& parts, const Part* head, Bytes size, Bytes extent) const {
  Stitch stitch;
  Bytes rest = size;
  if (head != nullptr) {
    const Bytes used = std::min(head->size, rest);
    stitch.pieces.push_back(
        {head->extent, head->extent->size, head->extent->size - head->size, used});
    rest -= used;
  }
  std::vector<const Part*> unused;
  for (const Part& whole : parts.wholes) {
    if (whole.size > rest) {
      unused.push_back(&whole);
      continue;
    }
    stitch.pieces.push_back({whole.extent, whole.size, Bytes{}, whole.size});
    rest -= whole.size;
  }
  if (rest == Bytes{}) return stitch;

  // No extent twice: in a view that maps one twice, a later block could lie on the same bytes
  // twice.
  const auto apart = [head](const Part& part) {
    return head == nullptr || part.extent != head->extent;
  };
  const auto fits = [&](const Part& part) { return part.size >= rest && apart(part); };
  const auto prefix = std::find_if(parts.prefixes.begin(), parts.prefixes.end(), fits);
  if (prefix != parts.prefixes.end()) {
    stitch.pieces.push_back({prefix->extent, prefix->extent->size, Bytes{}, rest});
    return stitch;
  }
  if (!unused.empty()) {  // the smallest: they are in descending order
    stitch.pieces.push_back({unused.back()->extent, unused.back()->size, Bytes{}, rest});
    return stitch;
  }
  // New pages, and the smallest prefix that saves as many of them as any.
  const Bytes alone = round_up(rest, page_);
  const Part* best = nullptr;
  Bytes least = alone;
  for (const Part& part : parts.prefixes) {
    if (!apart(part)) continue;
    const Bytes fresh = round_up(rest - part.size, page_);
    if (fresh < least) least = fresh, best = &part;
  }
  add_new(stitch, least, best == nullptr ? rest : least, extent);
  if (best != nullptr && rest > least) {
    stitch.pieces.push_back({best->extent, best->extent->size, Bytes{}, rest - least});
  }
  return stitch;
}

Stitch StitchPlanner::plan(const Zones& homes, StreamSlot slot, Bytes size, Bytes extent,
                           bool use_small) const {
  const Parts parts = find_parts(homes, slot, use_small);
  Stitch best = build(parts, nullptr, size, extent);
  const auto waste = [](const Stitch& s) {
    return s.pieces.back().extent == nullptr ? s.pieces.back().size - s.pieces.back().used
                                             : Bytes{};
  };
  std::size_t tried = 0;
  for (const Part& head : parts.suffixes) {
    if (head.size >= size) continue;
    if (++tried > kMostHeads) break;
    Stitch stitch = build(parts, &head, size, extent);
    if (std::tuple(stitch.new_bytes, stitch.maps(), waste(stitch)) <
        std::tuple(best.new_bytes, best.maps(), waste(best))) {
      best = std::move(stitch);
    }
  }
  return best;
}

}  // namespace v0
}  // namespace bursar
