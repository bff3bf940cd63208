// SPDX-License-Identifier: Apache-2.0
// ViewSet: extents mapped side by side a second time, so that scattered idle memory is one block.
//
// Every extent has a home: the place in its zone where its bytes are accounted for. A *view* is a
// run of addresses elsewhere at which parts of the world are stitched together: the free end of one
// extent, whole idle extents, the free begin of another. A block in a view leases the home
// intervals under it, so whoever finds the memory, at home or through any view, finds it free or
// taken alike. A view outlives its block: the next request for its size gets the same block without
// a driver call. Views are tried in the order they were made, so that a program that repeats itself
// takes the same decisions again and again.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <bursar/block/zones.hpp>
#include <bursar/physical/extent.hpp>

namespace bursar {
inline namespace v0 {

/// One extent in a view.
struct ViewPiece {
  Extent* extent = nullptr;  ///< null: it has left the view
  VaRange where{};
  Block* address = nullptr;  ///< while it is here: those addresses in the zone of views, `moving`
};

struct View {
  VaRange where{};
  Bytes made_for{};  ///< size of the block it was made for
  std::vector<ViewPiece> pieces;
  std::size_t leases = 0;         ///< live and pending blocks in it
  std::vector<FencePoint> freed;  ///< of blocks that were in it, one for each stream
};

/// Guarded by the device's heap lock. Never calls the driver.
class BURSAR_EXPORT ViewSet {
 public:
  /// A place in a view.
  struct Place {
    View* view = nullptr;
    DeviceAddress begin{};
  };

  View& add(VaRange where, Bytes made_for, std::vector<ViewPiece> pieces);
  /// The oldest view in which `size` bytes lie side by side whose home intervals are all idle and
  /// usable on `slot`; views made for just this size first.
  std::optional<Place> find(const Zones& homes, StreamSlot slot, Bytes size) const;
  /// Takes the home intervals under [begin, begin + size) of a view: `moving`, one for each piece.
  static std::vector<Block*> take(const Zones& homes, const Place& place, Bytes size);
  /// A block in the view was freed: its work is done once `point` has passed.
  static void give_back(View& view, FencePoint point);
  /// The oldest view that no block leases and whose work `done` (a predicate of FencePoint) says is
  /// over is given up: its pieces, still mapped. Empty when there is none.
  template <class Done>
  std::vector<ViewPiece> drop_oldest(Done&& done);
  /// Calls visit(const FencePoint&) for what views note of blocks that were in them, and forgets
  /// the notes for which it returns false.
  template <class Visitor>
  void keep_notes(Visitor&& visit) {
    for (const std::unique_ptr<View>& view : views_) {
      std::erase_if(view->freed, [&](const FencePoint& point) { return !visit(point); });
    }
  }
  /// The extent leaves all views: the addresses where it is still mapped.
  std::vector<Block*> detach(const Extent& extent);
  /// The piece whose addresses are the block `address`; null when no view has it.
  const ViewPiece* piece_at(const Block* address) const;
  /// Calls visit(const ViewPiece&) for every extent in every view.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const auto& [address, piece] : by_address_) visit(piece);
  }
  std::size_t count() const { return views_.size(); }
  Bytes metadata() const;

 private:
  void drop_if_empty(View* view);
  std::vector<ViewPiece> drop(std::size_t index);
  static std::optional<DeviceAddress> free_run(const View& view, const Zones& homes,
                                               StreamSlot slot, Bytes size);

  std::vector<std::unique_ptr<View>> views_;  // in order of creation
  std::unordered_map<std::uint64_t, std::vector<View*>> by_size_;
  std::unordered_map<const Extent*, std::vector<View*>> by_extent_;
  std::unordered_map<const Block*, ViewPiece> by_address_;
};

template <class Done>
std::vector<ViewPiece> ViewSet::drop_oldest(Done&& done) {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const View& view = *views_[i];
    if (view.leases == 0 && std::all_of(view.freed.begin(), view.freed.end(), done)) return drop(i);
  }
  return {};
}

}  // namespace v0
}  // namespace bursar
