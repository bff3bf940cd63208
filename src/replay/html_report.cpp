// SPDX-License-Identifier: Apache-2.0
// What comes from outside goes into the page as JSON in which no character ends a script, and the
// page puts it in place as text. Where scripts are off, the table of the rows stands instead.
#include "html_report.hpp"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "page/page_parts.hpp"
#include "replay_report.hpp"

namespace bursar {
inline namespace v0 {
namespace {

using Json = nlohmann::ordered_json;

/// `text` with each character that could begin or end markup written as `to` says.
std::string escaped(std::string_view text, std::string (*to)(char)) {
  std::string out;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') {
      out += to(c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string as_markup(std::string_view text) {
  return escaped(text, [](char c) { return fmt::format("&#{};", static_cast<int>(c)); });
}

/// Valid JSON still: these characters occur in its strings only.
std::string as_script(std::string_view json) {
  return escaped(json, [](char c) { return fmt::format("\\u{:04x}", static_cast<int>(c)); });
}

double as_us(Duration duration) { return static_cast<double>(duration.ns) / 1e3; }

/// KiB, rounded up.
Json values_of(const Timeline& timeline) {
  Json values = Json::array();
  for (const Bytes b : timeline.highest()) values.push_back((b.count + 1023) / 1024);
  return values;
}

/// [state, bytes, stream, requested], for merged ones also blocks and the bytes of each state.
Json json_of(const MapPiece& piece) {
  std::size_t state = 0;
  for (std::size_t i = 1; i < kBlockStateCount; ++i) {
    if (piece.bytes[i] > piece.bytes[state]) state = i;
  }
  Json json{state, piece.size().count, piece.stream, piece.requested.count};
  if (piece.blocks == 1) return json;
  json.push_back(piece.blocks);
  for (const Bytes b : piece.bytes) json.push_back(b.count);
  return json;
}

/// [offset, bytes, id], for merged ones also how many.
Json json_of(const MapExtent& extent) {
  Json json{extent.offset.count, extent.size.count, extent.id};
  if (extent.extents > 1) json.push_back(extent.extents);
  return json;
}

Json json_of(const AddressMap& map) {
  Json ranges = Json::array();
  for (const MapRange& range : map.ranges) {
    Json pieces = Json::array();
    for (const MapPiece& piece : range.pieces) pieces.push_back(json_of(piece));
    Json extents = Json::array();
    for (const MapExtent& extent : range.extents) extents.push_back(json_of(extent));
    ranges.push_back({{"begin", fmt::format("{:#x}", range.range.begin.value)},
                      {"size", range.range.size.count},
                      {"pieces", std::move(pieces)},
                      {"extents", std::move(extents)}});
  }
  return {{"spare", map.spare.count}, {"streams", map.streams}, {"ranges", std::move(ranges)}};
}

Json json_of(const ReplayPicture& picture) {
  Json reserved = Json::array();
  for (const ReservedCurve& curve : picture.reserved) {
    reserved.push_back(
        {{"allocator", curve.allocator}, {"pass", curve.pass}, {"kib", values_of(curve.timeline)}});
  }
  const RequestedCurve& requested = picture.requested;
  Json json{{"trace", picture.trace},
            {"events", picture.events},
            {"duration_us", as_us(picture.duration)},
            {"slice_us", as_us(requested.timeline.slice_length())},
            {"requested_kib", values_of(requested.timeline)},
            {"peak",
             {{"bytes", requested.peak.count},
              {"operation", requested.peak_operation},
              {"time_us", as_us(requested.peak_time)}}},
            {"reserved", std::move(reserved)}};
  if (picture.map) json["map"] = json_of(*picture.map);
  return json;
}

std::string data_of(std::span<const ReplayRow> rows, std::span<const ReplayPicture> pictures) {
  Json all = Json::array();
  for (const ReplayPicture& picture : pictures) all.push_back(json_of(picture));
  const Json report{{"rows", Json::parse(to_json(rows))}, {"pictures", std::move(all)}};
  return as_script(report.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

std::string to_html(std::span<const ReplayRow> rows, std::span<const ReplayPicture> pictures) {
  const std::string device = rows.empty() ? "nothing" : rows.front().device;
  return fmt::format(
      R"~(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Bursar replay on {0}</title>
<style>
{1}</style>
</head>
<body>
<header>
<h1>Bursar replay on {0}</h1>
<p>Recorded allocations replayed, and the device memory that allocators held to serve them.
Curves show the highest value in each of at most {2} equal slices of a trace's time.</p>
</header>
<main>
</main>
<noscript><p>The pictures need scripts. The rows:</p><pre>{3}</pre></noscript>
<script type="application/json" id="report">{4}</script>
<script>
{5}</script>
</body>
</html>
)~",
      as_markup(device), kPageStyle, Timeline::kSlices, as_markup(to_table(rows)),
      data_of(rows, pictures), kPageScript);
}

}  // namespace v0
}  // namespace bursar
