// SPDX-License-Identifier: Apache-2.0
// Filling redzones and comparing them.
#include <bursar/block/redzones.hpp>

#include <algorithm>
#include <array>
#include <optional>

#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

namespace {

/// Not what a program is likely to write, as a byte or as a number made of it.
constexpr std::uint8_t kPattern = 0xB7;

/// The first and last wrong byte of a zone, counted from where it begins.
struct Wrong {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

DriverCode look(Driver& driver, DeviceId device, VaRange zone, std::optional<Wrong>& wrong) {
  std::array<std::byte, kRedzone.count * 2> buffer;
  BURSAR_CHECK(1, zone.size.count <= buffer.size());
  const std::span<std::byte> bytes(buffer.data(), zone.size.count);
  if (bytes.empty()) return DriverCode::success;
  const DriverCode code = driver.read(device, zone.begin, bytes);
  if (code != DriverCode::success) return code;
  const auto is_wrong = [](std::byte byte) { return byte != std::byte{kPattern}; };
  const auto first = std::find_if(bytes.begin(), bytes.end(), is_wrong);
  if (first == bytes.end()) return code;
  const auto last = std::find_if(bytes.rbegin(), bytes.rend(), is_wrong);
  wrong = {static_cast<std::uint64_t>(first - bytes.begin()),
           static_cast<std::uint64_t>(bytes.rend() - last) - 1};
  return code;
}

std::string text_of(std::uint64_t from, std::uint64_t to, const char* where) {
  return "bytes " + std::to_string(from) + " to " + std::to_string(to) + where;
}

}  // namespace

Redzones redzones_of(const Block& block) {
  Redzones zones;
  zones.data = {block.data(), block.requested};
  if (block.front != 0) zones.before = {zones.data.begin - kRedzone, kRedzone};
  const Bytes rounded = round_up(block.requested, kRedzone) + kRedzone;
  const DeviceAddress end = std::min(zones.data.begin + rounded, block.end());
  zones.behind = {zones.data.end(), end - zones.data.end()};
  return zones;
}

DriverCode fill_redzones(Driver& driver, DeviceId device, const Redzones& zones,
                         StreamHandle stream) {
  for (const VaRange zone : {zones.before, zones.behind}) {
    if (zone.size == Bytes{}) continue;
    const DriverCode code = driver.memset(device, zone.begin, kPattern, zone.size, stream);
    if (code != DriverCode::success) return code;
  }
  return DriverCode::success;
}

DriverCode inspect_redzones(Driver& driver, DeviceId device, const Redzones& zones,
                            std::string& damage) {
  damage.clear();
  std::optional<Wrong> before;
  std::optional<Wrong> behind;
  DriverCode code = look(driver, device, zones.before, before);
  if (code == DriverCode::success) code = look(driver, device, zones.behind, behind);
  if (code != DriverCode::success) return code;
  const std::uint64_t size = zones.before.size.count;
  if (before) damage = text_of(size - before->first, size - before->last, " before its begin");
  if (before && behind) damage += " and ";
  if (behind) damage += text_of(behind->first + 1, behind->last + 1, " past its end");
  return code;
}

}  // namespace v0
}  // namespace bursar
