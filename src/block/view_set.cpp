// SPDX-License-Identifier: Apache-2.0
// Finding, leasing and giving up views.
#include <bursar/block/view_set.hpp>

#include <algorithm>

#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

View& ViewSet::add(VaRange where, Bytes made_for, std::vector<ViewPiece> pieces) {
  views_.push_back(std::make_unique<View>());
  View& view = *views_.back();
  view.where = where;
  view.made_for = made_for;
  view.pieces = std::move(pieces);
  by_size_[made_for.count].push_back(&view);
  for (const ViewPiece& piece : view.pieces) {
    std::vector<View*>& in = by_extent_[piece.extent];
    BURSAR_CHECK(1, in.empty() || in.back() != &view);  // no extent twice
    in.push_back(&view);
    by_address_[piece.address] = piece;
  }
  return view;
}

std::optional<DeviceAddress> ViewSet::free_run(const View& view, const Zones& homes,
                                               StreamSlot slot, Bytes size) {
  DeviceAddress begin = view.where.begin;
  for (const ViewPiece& piece : view.pieces) {
    if (view.where.end() - begin < size) return std::nullopt;
    if (piece.extent == nullptr) {
      begin = piece.where.end();
      continue;
    }
    const DeviceAddress base = piece.extent->mapped_at;
    const Bytes length = piece.extent->size;
    for (const Block* block = homes.find(base); block->begin < base + length; block = block->next) {
      const Bytes until = std::min(block->end(), base + length) - base;
      if (block->state != BlockState::idle || !BlockMap::usable(*block, slot)) {
        begin = piece.where.begin + until;
        if (view.where.end() - begin < size) return std::nullopt;
      } else if (piece.where.begin + until - begin >= size) {
        return begin;
      }
      if (block->next == nullptr) break;
    }
  }
  return std::nullopt;
}

std::optional<ViewSet::Place> ViewSet::find(const Zones& homes, StreamSlot slot, Bytes size) const {
  if (const auto made = by_size_.find(size.count); made != by_size_.end()) {
    for (View* view : made->second) {
      if (const auto begin = free_run(*view, homes, slot, size)) return Place{view, *begin};
    }
  }
  for (const std::unique_ptr<View>& view : views_) {
    if (view->where.size < size) continue;
    if (const auto begin = free_run(*view, homes, slot, size)) return Place{view.get(), *begin};
  }
  return std::nullopt;
}

std::vector<Block*> ViewSet::take(const Zones& homes, const Place& place, Bytes size) {
  std::vector<Block*> parts;
  const VaRange wanted{place.begin, size};
  for (const ViewPiece& piece : place.view->pieces) {
    const VaRange here = piece.where;
    const DeviceAddress begin = std::max(here.begin, wanted.begin);
    const DeviceAddress end = std::min(here.end(), wanted.end());
    if (begin >= end) continue;
    const DeviceAddress at = piece.extent->mapped_at + (begin - here.begin);
    Block* start = homes.find(at);
    parts.push_back(start->map->gather(start, {at, end - begin}));
  }
  return parts;
}

std::vector<Block*> ViewSet::detach(const Extent& extent) {
  std::vector<Block*> left;
  const auto found = by_extent_.find(&extent);
  if (found == by_extent_.end()) return left;
  for (View* view : found->second) {
    for (ViewPiece& piece : view->pieces) {
      if (piece.extent != &extent) continue;
      left.push_back(piece.address);
      by_address_.erase(piece.address);
      piece.extent = nullptr;
      piece.address = nullptr;
    }
  }
  const std::vector<View*> touched = std::move(found->second);
  by_extent_.erase(found);
  for (View* view : touched) drop_if_empty(view);
  return left;
}

void ViewSet::give_back(View& view, FencePoint point) {
  --view.leases;
  for (FencePoint& known : view.freed) {
    if (known.slot != point.slot) continue;
    known.batch = std::max(known.batch, point.batch);
    return;
  }
  view.freed.push_back(point);
}

std::vector<ViewPiece> ViewSet::drop(std::size_t index) {
  View* view = views_[index].get();
  std::vector<ViewPiece> pieces;
  for (ViewPiece& piece : view->pieces) {
    if (piece.extent == nullptr) continue;
    pieces.push_back(piece);
    by_address_.erase(piece.address);
    std::vector<View*>& in = by_extent_[piece.extent];
    std::erase(in, view);
    if (in.empty()) by_extent_.erase(piece.extent);
    piece.extent = nullptr;
  }
  drop_if_empty(view);
  return pieces;
}

void ViewSet::drop_if_empty(View* view) {
  const auto at =
      std::find_if(views_.begin(), views_.end(), [view](const auto& v) { return v.get() == view; });
  if (at == views_.end()) return;
  for (const ViewPiece& piece : view->pieces) {
    if (piece.extent != nullptr) return;
  }
  std::vector<View*>& same = by_size_[view->made_for.count];
  std::erase(same, view);
  if (same.empty()) by_size_.erase(view->made_for.count);
  views_.erase(at);
}

const ViewPiece* ViewSet::piece_at(const Block* address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : &found->second;
}

Bytes ViewSet::metadata() const {
  std::size_t bytes = views_.capacity() * (sizeof(View) + sizeof(void*));
  bytes += by_address_.size() * (sizeof(ViewPiece) * 2 + 4 * sizeof(void*));
  return Bytes{bytes};
}

}  // namespace v0
}  // namespace bursar
