// SPDX-License-Identifier: Apache-2.0
// The page: well formed, complete in itself, bounded, and deaf to what names say.
#include "support/catch.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "made_trace.hpp"
#include "replay/html_report.hpp"
#include "replay/replay.hpp"
#include "replay/replay_report.hpp"
#include "replay/sim_device.hpp"

using namespace bursar;
using namespace bursar::literals;
using bursar::test::small_trace;

namespace {

struct Page {
  std::vector<ReplayRow> rows;
  std::string html;
};

Page page_of(const Trace& trace) {
  const std::vector<Trace> traces{trace};
  PictureWatch watch(traces, 1);
  Page page;
  for (const char* allocator : {"bursar", "segment_cache"}) {
    SimDevice device;
    ReplayOptions options;
    options.watch = &watch;
    const auto target = device.make_target(allocator);
    page.rows.push_back(replay(traces, device, *target, options).at(0));
  }
  page.html = to_html(page.rows, std::vector<ReplayPicture>{watch.picture()});
  return page;
}

std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin);
  REQUIRE(from != std::string_view::npos);
  text.remove_prefix(from + begin.size());
  const std::size_t to = text.find(end);
  REQUIRE(to != std::string_view::npos);
  return text.substr(0, to);
}

nlohmann::json data_of(const std::string& html) {
  return nlohmann::json::parse(
      between(html, "<script type=\"application/json\" id=\"report\">", "</script>"));
}

/// The tags as a browser finds them, in order: what is in <script> and <style> is none.
std::vector<std::string> tags_of(std::string_view html) {
  std::vector<std::string> tags;
  for (std::size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find_first_of(" >", at);
    tags.emplace_back(html.substr(at + 1, end - at - 1));
    if (tags.back() == "script" || tags.back() == "style") {
      at = html.find("</" + tags.back(), at) - 1;
    }
  }
  return tags;
}

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; ++count) {
    at = text.find(what, at + what.size());
  }
  return count;
}

}  // namespace

TEST_CASE("every element of the page that is opened is closed in its place", "[replay][html]") {
  const std::string html = page_of(small_trace()).html;
  CHECK_THAT(html, Catch::Matchers::StartsWith("<!DOCTYPE html>\n<html lang=\"en\">"));
  std::vector<std::string> open;
  for (const std::string& tag : tags_of(html)) {
    if (tag == "!DOCTYPE" || tag == "meta") continue;
    if (tag[0] != '/') {
      open.push_back(tag);
      continue;
    }
    REQUIRE_FALSE(open.empty());
    CHECK("/" + open.back() == tag);
    open.pop_back();
  }
  CHECK(open.empty());
}

TEST_CASE("the page needs nothing but itself", "[replay][html]") {
  const std::string html = page_of(small_trace()).html;
  for (const char* outside : {"src=", "@import", "url(", "fetch(", "<link", "import "}) {
    INFO(outside);
    CHECK(html.find(outside) == std::string::npos);
  }
  // The one address is the name of SVG.
  CHECK(count_of(html, "http") == 1);
  CHECK(count_of(html, "http://www.w3.org/2000/svg") == 1);
}

TEST_CASE("the page carries the rows, the curves and the map", "[replay][html]") {
  const Page page = page_of(small_trace());
  const nlohmann::json data = data_of(page.html);
  CHECK(data["rows"] == nlohmann::json::parse(to_json(page.rows)));
  REQUIRE(data["pictures"].size() == 1);
  const nlohmann::json& picture = data["pictures"][0];
  CHECK(picture["trace"] == "small.csv");
  CHECK(picture["events"] == 5);
  CHECK(picture["peak"]["bytes"] == (30_MiB + 600_KiB).count);
  CHECK(picture["peak"]["operation"] == 4);
  CHECK(picture["peak"]["time_us"] == 3000.0);
  const auto kib = picture["requested_kib"].get<std::vector<std::uint64_t>>();
  CHECK(*std::max_element(kib.begin(), kib.end()) == 30 * 1024 + 600);
  REQUIRE(picture["reserved"].size() == 2);
  CHECK(picture["reserved"][0]["allocator"] == "bursar");
  CHECK(picture["reserved"][1]["allocator"] == "segment_cache");
  const auto held = picture["reserved"][1]["kib"].get<std::vector<std::uint64_t>>();
  CHECK(*std::max_element(held.begin(), held.end()) == page.rows[1].reserved_peak().count / 1024);
  Bytes requested;
  for (const auto& range : picture["map"]["ranges"]) {
    for (const auto& piece : range["pieces"]) requested += Bytes{piece[3].get<std::uint64_t>()};
  }
  CHECK(requested == 30_MiB + 600_KiB);
}

TEST_CASE("without scripts the table of the rows can be read", "[replay][html]") {
  const Page page = page_of(small_trace());
  CHECK(between(page.html, "<pre>", "</pre>") == to_table(page.rows));
}

TEST_CASE("a name is data, whatever it says", "[replay][html]") {
  Trace trace = small_trace();
  trace.name = "</script><script>alert(1)</script></pre><b>&amp;<!--\"'.csv";
  const Page page = page_of(trace);
  CHECK(page.html.find("alert(1)</") == std::string::npos);
  CHECK(page.html.find("<b>") == std::string::npos);
  CHECK(page.html.find("<!--") == std::string::npos);
  CHECK(tags_of(page.html) == tags_of(page_of(small_trace()).html));
  CHECK(data_of(page.html)["rows"][0]["trace"] == trace.name);
  CHECK(data_of(page.html)["pictures"][0]["trace"] == trace.name);
}

TEST_CASE("a name that is no text does not break the page", "[replay][html]") {
  Trace trace = small_trace();
  trace.name = "\xff\xfe.csv";
  CHECK(data_of(page_of(trace).html)["pictures"].size() == 1);
}

TEST_CASE("a device's name is escaped as well", "[replay][html]") {
  Page page = page_of(small_trace());
  page.rows[0].device = "GPU <b>";
  const std::string html = to_html(page.rows, {});
  CHECK(html.find("<title>Bursar replay on GPU &#60;b&#62;</title>") != std::string::npos);
}

TEST_CASE("the page of very many blocks and extents is bounded", "[replay][html]") {
  Snapshot snapshot;
  const DeviceAddress begin{1ull << 45};
  constexpr std::uint64_t kPages = 100'000;
  for (std::uint64_t i = 0; i < kPages; ++i) {
    const VaRange page{begin + 2_MiB * i, 2_MiB};
    const BlockState state = i % 3 == 0 ? BlockState::idle : BlockState::live;
    snapshot.blocks.push_back(
        {.range = page, .requested = 1_MiB, .state = state, .stream = StreamId{i % 5}});
    snapshot.extents.push_back({kPages - i, 2_MiB, page.begin, {}});
  }
  snapshot.ranges = {{begin, 2_MiB * kPages}};
  const std::vector<Trace> traces{small_trace()};
  ReplayPicture picture = PictureWatch(traces, 1).picture();
  picture.map = make_address_map(snapshot, [](StreamId) { return std::string("stream"); });
  const std::string html = to_html({}, std::vector<ReplayPicture>{picture});
  CHECK(html.size() < 800'000);
  CHECK(html.size() > 100'000);
}

TEST_CASE("a page of nothing is a page", "[replay][html]") {
  const std::string html = to_html({}, {});
  CHECK(data_of(html)["rows"].empty());
  CHECK(data_of(html)["pictures"].empty());
}
