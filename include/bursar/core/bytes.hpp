// SPDX-License-Identifier: Apache-2.0
// Bytes: an amount of memory that cannot be mistaken for a count, an address or a page number.
//
// Budgets, extents and ranges all speak in bytes, and a sum that wraps around is how a limit stops
// limiting. So the unit is a type, arithmetic that may overflow is asked for by name and says
// whether it did, and rounding names its direction.
//
// Equality is declared beside each ordering: nvcc 13 declares the implied one and never defines it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include <bursar/core/config.hpp>

namespace bursar {
inline namespace v0 {

/// An amount of memory in bytes. Plain arithmetic is for sums known to fit (amounts of memory that
/// exist); `checked_add` and `checked_round_up` are for amounts that somebody asked for.
struct Bytes {
  std::uint64_t count = 0;

  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t n) : count(n) {}

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr bool operator==(Bytes, Bytes) = default;
  constexpr Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  constexpr Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.count - b.count}; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return Bytes{a.count * n}; }
  friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count / b.count; }
  friend constexpr Bytes operator/(Bytes a, std::uint64_t n) { return Bytes{a.count / n}; }

  static constexpr Bytes max() { return Bytes{std::numeric_limits<std::uint64_t>::max()}; }
};

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{n << 30}; }
}  // namespace literals

/// True for 1, 2, 4, ...
constexpr bool is_power_of_two(Bytes b) { return b.count != 0 && (b.count & (b.count - 1)) == 0; }

/// `b` rounded down to a multiple of `unit`, a power of two.
constexpr Bytes round_down(Bytes b, Bytes unit) { return Bytes{b.count & ~(unit.count - 1)}; }

/// `b` rounded up to a multiple of `unit`, a power of two. `b + unit` must not overflow.
constexpr Bytes round_up(Bytes b, Bytes unit) { return round_down(b + unit - Bytes{1}, unit); }

/// `b` rounded up to a multiple of `unit`, a power of two; nothing where the result does not fit.
constexpr std::optional<Bytes> checked_round_up(Bytes b, Bytes unit) {
  if (b > Bytes::max() - unit) return std::nullopt;
  return round_up(b, unit);
}

/// `a + b`; nothing where the sum does not fit.
constexpr std::optional<Bytes> checked_add(Bytes a, Bytes b) {
  if (a > Bytes::max() - b) return std::nullopt;
  return a + b;
}

constexpr bool is_aligned(Bytes b, Bytes unit) { return (b.count & (unit.count - 1)) == 0; }

}  // namespace v0
}  // namespace bursar
