// SPDX-License-Identifier: Apache-2.0
// SegmentCache: a stand-in for today's practice, to be compared with where no GPU is.
//
// What the caching allocators of deep-learning frameworks do by default: whole segments are taken
// from the driver, 2 MiB for small blocks (up to 1 MiB) and 20 MiB or the block's own size for
// large ones; a request takes the smallest free piece of its stream and kind; what is left over is
// split off unless it is too small to matter; free neighbors are joined at once; memory goes back
// to the driver only when a segment is wholly free and the driver has no more. It is written from
// that description, not from any such allocator, and shares none of their code.
//
// Where it is simpler: no lock, one device, and a block freed on another stream than its own goes
// back to its own stream's pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>

#include <bursar/core/result.hpp>
#include <bursar/driver/driver.hpp>

namespace bursar {
inline namespace v0 {

class SegmentCache {
 public:
  explicit SegmentCache(std::shared_ptr<Driver> driver, DeviceId device = {});
  /// Gives every segment back.
  ~SegmentCache();
  SegmentCache(const SegmentCache&) = delete;
  SegmentCache& operator=(const SegmentCache&) = delete;

  /// A block of at least `size` bytes; null for none. device_oom after all idle segments were given
  /// back in vain.
  result<void*> allocate(Bytes size, StreamId stream);
  /// invalid_argument for what is no live block. Null is ignored.
  result<void> deallocate(void* block);

  /// Proves that pieces lie side by side, that no two free neighbors are apart, and that exactly
  /// the free ones are in the index.
  result<void> validate() const;

 private:
  enum class Kind : std::uint8_t { small, large };
  /// A part of a segment: a live block or free.
  struct Piece {
    VaRange range{};
    StreamId stream{};
    Kind kind{};
    bool live = false;
    Piece* before = nullptr;  ///< neighbors in the same segment
    Piece* after = nullptr;
  };
  /// Pieces of one stream and kind together, smallest first, then by address.
  struct BestFit {
    using is_transparent = void;
    bool operator()(const Piece* a, const Piece* b) const;
  };

  Piece* find(Bytes size, StreamId stream, Kind kind) const;
  result<Piece*> new_segment(Bytes size, StreamId stream, Kind kind);
  Piece* add_piece(const Piece& piece);
  void split(Piece& piece, Bytes size);
  /// Joins `piece` with the free piece after it.
  void join(Piece& piece);
  void release_idle_segments();

  std::shared_ptr<Driver> driver_;
  DeviceId device_;
  std::unordered_map<std::uint64_t, Piece> pieces_;  ///< by begin; addresses of elements are stable
  std::set<Piece*, BestFit> free_;
};

}  // namespace v0
}  // namespace bursar
