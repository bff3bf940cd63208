// SPDX-License-Identifier: Apache-2.0
// The one parser of BURSAR_CONF.
#include <bursar/allocator/allocator_options.hpp>

#include <charconv>
#include <cstdlib>
#include <optional>

#include <bursar/core/check.hpp>
#include <bursar/core/parse_bytes.hpp>

namespace bursar {
inline namespace v0 {

namespace {

error bad(const char* message) { return {.kind = ErrorKind::invalid_argument, .message = message}; }

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

result<void> set_size(std::string_view value, Bytes& field) {
  const std::optional<Bytes> size = parse_bytes(value);
  if (!size) return bad("BURSAR_CONF: a size is written like 32MiB, 1GiB or 4096");
  field = *size;
  return {};
}

result<void> set_number(std::string_view value, std::uint32_t& field) {
  const std::optional<std::uint32_t> n = number(value);
  if (!n) return bad("BURSAR_CONF: a whole number is expected");
  field = *n;
  return {};
}

result<void> set_switch(std::string_view value, bool& field) {
  if (value != "on" && value != "off") return bad("BURSAR_CONF: a switch is on or off");
  field = value == "on";
  return {};
}

result<void> set_milliseconds(std::string_view value, Duration& field) {
  const std::optional<std::uint32_t> n = number(value);
  if (!n) return bad("BURSAR_CONF: a duration is a whole number of milliseconds");
  field = milliseconds(*n);
  return {};
}

result<void> set_scrub(std::string_view value, Scrub& field) {
  if (value == "never") return field = Scrub::never, result<void>();
  if (value == "cross_domain") return field = Scrub::cross_domain, result<void>();
  if (value == "always") return field = Scrub::always, result<void>();
  return bad("BURSAR_CONF: scrub is never, cross_domain or always");
}

result<void> set_preset(std::string_view value, AllocatorOptions& options) {
  const result<AllocatorOptions> chosen = preset_options(value, options);
  if (!chosen) return chosen.failure();
  options = *chosen;
  return {};
}

result<void> set_field(std::string_view key, std::string_view value, AllocatorOptions& options) {
  if (key == "preset") return set_preset(value, options);
  if (key == "max_extent") return set_size(value, options.max_extent);
  if (key == "small_limit") return set_size(value, options.small_limit);
  if (key == "borrow_limit") return set_size(value, options.borrow_limit);
  if (key == "growth_divisor") return set_number(value, options.growth_divisor);
  if (key == "extent_share") return set_number(value, options.extent_share);
  if (key == "stitch_limit") return set_size(value, options.stitch_limit);
  if (key == "max_views") return set_number(value, options.max_views);
  if (key == "guard") return set_number(value, options.guard);
  if (key == "wide_guard") return set_number(value, options.wide_guard);
  if (key == "map_price") return set_number(value, options.map_price);
  if (key == "fence_batch") return set_number(value, options.fence_batch);
  if (key == "fence_bytes") return set_size(value, options.fence_bytes);
  if (key == "address_factor") return set_number(value, options.address_factor);
  if (key == "alias_moves") return set_switch(value, options.alias_moves);
  if (key == "thread_caches") return set_switch(value, options.thread_caches);
  if (key == "wait_limit") return set_milliseconds(value, options.wait_limit);
  if (key == "scrub") return set_scrub(value, options.scrub);
  if (key == "passthrough") return set_switch(value, options.passthrough);
  if (key == "redzones") return set_switch(value, options.redzones);
  return bad(
      "BURSAR_CONF: unknown key; known are preset, max_extent, small_limit, borrow_limit, "
      "growth_divisor, extent_share, stitch_limit, max_views, guard, wide_guard, map_price, "
      "fence_batch, fence_bytes, address_factor, alias_moves, thread_caches, wait_limit, scrub, "
      "passthrough, redzones");
}

}  // namespace

result<AllocatorOptions> preset_options(std::string_view name, AllocatorOptions base) {
  const AllocatorOptions balanced;
  base.max_extent = balanced.max_extent;
  base.growth_divisor = balanced.growth_divisor;
  base.extent_share = balanced.extent_share;
  base.guard = balanced.guard;
  base.wide_guard = balanced.wide_guard;
  base.map_price = balanced.map_price;
  base.small_limit = balanced.small_limit;
  base.borrow_limit = balanced.borrow_limit;
  if (name == "balanced") return base;
  if (name == "time") {
    base.growth_divisor = 64;
    base.extent_share = 8;
    base.wide_guard = 15;
    base.map_price = 100;
    return base;
  }
  if (name == "utilization") {
    base.growth_divisor = 256;
    base.extent_share = 16;
    base.guard = 8;
    base.map_price = 0;
    base.small_limit = Bytes{4ull << 20};
    base.borrow_limit = base.small_limit;
    return base;
  }
  return bad("a preset is balanced, time or utilization");
}

result<void> check_options(const AllocatorOptions& options) {
  if (!is_power_of_two(options.max_extent) || options.max_extent > Bytes{1ull << 30}) {
    return bad("max_extent must be a power of two of at most 1GiB");
  }
  if (options.growth_divisor == 0 || options.extent_share == 0 || options.fence_batch == 0) {
    return bad("growth_divisor, extent_share and fence_batch must be at least 1");
  }
  constexpr std::uint32_t kMost = 10'000;
  if (options.guard > kMost || options.wide_guard > kMost || options.map_price > kMost) {
    return bad("guard, wide_guard and map_price must be at most 10000");
  }
  if (options.address_factor == 0 || options.address_factor > 64) {
    return bad("address_factor must be between 1 and 64");
  }
  if (options.wait_limit < Duration{} || options.wait_limit > milliseconds(3'600'000)) {
    return bad("wait_limit must be between 0 and 3,600,000 ms");
  }
  if (options.redzones && kCheckLevel < 2) {
    return bad("redzones need a library built with BURSAR_CHECK_LEVEL 2 or 3");
  }
  if (options.redzones && options.passthrough) {
    return bad("redzones and passthrough exclude each other: choose one");
  }
  return {};
}

result<AllocatorOptions> parse_options(std::string_view text, AllocatorOptions base) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      return bad("BURSAR_CONF: items are written key:value and separated by commas");
    }
    const result<void> set = set_field(item.substr(0, colon), item.substr(colon + 1), base);
    if (!set) return set.failure();
  }
  if (result<void> good = check_options(base); !good) return good.failure();
  return base;
}

result<AllocatorOptions> options_from_environment() {
  const char* text = std::getenv("BURSAR_CONF");
  return parse_options(text == nullptr ? "" : text);
}

}  // namespace v0
}  // namespace bursar
