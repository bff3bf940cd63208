// SPDX-License-Identifier: Apache-2.0
// Best fit in segments, split and joined; see the header for whose practice it stands for.
#include "segment_cache.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {
namespace {

using namespace literals;

constexpr Bytes kUnit = 512_B;          // block sizes are multiples of it
constexpr Bytes kLargestSmall = 1_MiB;  // blocks up to here share small segments
constexpr Bytes kSmallSegment = 2_MiB;
constexpr Bytes kLargeSegment = 20_MiB;
constexpr Bytes kOwnSegmentFrom = 10_MiB;  // blocks from here on get a segment of their size
constexpr Bytes kSegmentUnit = 2_MiB;
constexpr Bytes kLargestRequest{std::uint64_t{1} << 60};

}  // namespace

bool SegmentCache::BestFit::operator()(const Piece* a, const Piece* b) const {
  return std::tie(a->stream, a->kind, a->range.size, a->range.begin) <
         std::tie(b->stream, b->kind, b->range.size, b->range.begin);
}

SegmentCache::SegmentCache(std::shared_ptr<Driver> driver, DeviceId device)
    : driver_(std::move(driver)), device_(device) {}

SegmentCache::~SegmentCache() {
  for (const auto& [begin, piece] : pieces_) {
    if (piece.before == nullptr) driver_->free_plain(piece.range.begin);
  }
}

result<void*> SegmentCache::allocate(Bytes size, StreamId stream) {
  if (size == Bytes{0}) return nullptr;
  if (size >= kLargestRequest) {
    return driver_error(DriverCode::out_of_memory, DriverCall::create, device_, size);
  }
  const Bytes need = round_up(size, kUnit);
  const Kind kind = need <= kLargestSmall ? Kind::small : Kind::large;
  Piece* piece = find(need, stream, kind);
  if (piece == nullptr) {
    const result<Piece*> segment = new_segment(need, stream, kind);
    if (!segment) return segment.failure();
    piece = *segment;
  }
  free_.erase(piece);
  piece->live = true;
  const Bytes rest = piece->range.size - need;
  if (kind == Kind::small ? rest >= kUnit : rest > kLargestSmall) split(*piece, need);
  return to_pointer(piece->range.begin);
}

result<void> SegmentCache::deallocate(void* block) {
  if (block == nullptr) return {};
  const auto found = pieces_.find(to_address(block).value);
  if (found == pieces_.end() || !found->second.live) {
    error e;
    e.kind = ErrorKind::invalid_argument;
    e.message = "no live block begins at this address";
    return e;
  }
  Piece* piece = &found->second;
  piece->live = false;
  if (piece->after != nullptr && !piece->after->live) join(*piece);
  if (piece->before != nullptr && !piece->before->live) {
    piece = piece->before;
    free_.erase(piece);
    join(*piece);
  }
  free_.insert(piece);
  return {};
}

SegmentCache::Piece* SegmentCache::find(Bytes size, StreamId stream, Kind kind) const {
  Piece least;
  least.range.size = size;
  least.stream = stream;
  least.kind = kind;
  const auto found = free_.lower_bound(&least);
  if (found == free_.end() || (*found)->stream != stream || (*found)->kind != kind) return nullptr;
  return *found;
}

result<SegmentCache::Piece*> SegmentCache::new_segment(Bytes size, StreamId stream, Kind kind) {
  Bytes segment = kSmallSegment;
  if (kind == Kind::large) {
    segment = size < kOwnSegmentFrom ? kLargeSegment : round_up(size, kSegmentUnit);
  }
  DeviceAddress begin;
  DriverCode code = driver_->malloc_plain(device_, segment, begin);
  if (code == DriverCode::out_of_memory) {
    release_idle_segments();
    code = driver_->malloc_plain(device_, segment, begin);
  }
  if (code != DriverCode::success) return driver_error(code, DriverCall::create, device_, segment);
  Piece piece;
  piece.range = {begin, segment};
  piece.stream = stream;
  piece.kind = kind;
  Piece* added = add_piece(piece);
  free_.insert(added);
  return added;
}

SegmentCache::Piece* SegmentCache::add_piece(const Piece& piece) {
  return &pieces_.emplace(piece.range.begin.value, piece).first->second;
}

void SegmentCache::split(Piece& piece, Bytes size) {
  Piece rest = piece;
  rest.range = {piece.range.begin + size, piece.range.size - size};
  rest.live = false;
  rest.before = &piece;
  Piece* added = add_piece(rest);
  if (added->after != nullptr) added->after->before = added;
  piece.range.size = size;
  piece.after = added;
  free_.insert(added);
}

void SegmentCache::join(Piece& piece) {
  Piece* taken = piece.after;
  free_.erase(taken);
  piece.range.size += taken->range.size;
  piece.after = taken->after;
  if (piece.after != nullptr) piece.after->before = &piece;
  pieces_.erase(taken->range.begin.value);
}

void SegmentCache::release_idle_segments() {
  for (auto it = free_.begin(); it != free_.end();) {
    const Piece* piece = *it;
    const bool whole = piece->before == nullptr && piece->after == nullptr;
    if (!whole || driver_->free_plain(piece->range.begin) != DriverCode::success) {
      ++it;
      continue;
    }
    it = free_.erase(it);
    pieces_.erase(piece->range.begin.value);
  }
}

result<void> SegmentCache::validate() const {
  error broken;
  broken.message = "segment_cache: pieces, neighbors and index of free pieces disagree";
  std::size_t free_count = 0;
  for (const auto& [begin, piece] : pieces_) {
    const Piece* after = piece.after;
    const bool in_index = free_.contains(&piece);
    if (begin != piece.range.begin.value || in_index == piece.live) return broken;
    if (after != nullptr && (after->before != &piece || after->range.begin != piece.range.end() ||
                             (!after->live && !piece.live))) {
      return broken;
    }
    free_count += piece.live ? 0 : 1;
  }
  if (free_count != free_.size()) return broken;
  return {};
}

}  // namespace v0
}  // namespace bursar
