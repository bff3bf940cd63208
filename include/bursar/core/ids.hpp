// SPDX-License-Identifier: Apache-2.0
// The names of things that have a number: devices, domains, streams, pages.
//
// A stream is known by its id (cuStreamGetId), never by its handle: the driver hands a destroyed
// stream's handle to the next stream, while ids are never used twice in a process.
//
// Equality is declared beside each ordering: nvcc 13 declares the implied one and never defines it.
#pragma once

#include <compare>
#include <cstdint>

#include <bursar/core/bytes.hpp>

namespace bursar {
inline namespace v0 {

/// A device's ordinal as the driver counts them, from 0.
struct DeviceId {
  std::int32_t value = 0;
  friend constexpr auto operator<=>(DeviceId, DeviceId) = default;
  friend constexpr bool operator==(DeviceId, DeviceId) = default;
};

/// Who pays: index of a domain within its allocator. 0 is the allocator's default domain.
struct DomainId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(DomainId, DomainId) = default;
  friend constexpr bool operator==(DomainId, DomainId) = default;
};

/// A stream's id, unique in the process for its whole life. `kNoStream` names none.
struct StreamId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(StreamId, StreamId) = default;
  friend constexpr bool operator==(StreamId, StreamId) = default;
};
inline constexpr StreamId kNoStream{~std::uint64_t{0}};

/// A number of pages (the driver's allocation granularity, 2 MiB on today's GPUs).
struct PageCount {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(PageCount, PageCount) = default;
  friend constexpr bool operator==(PageCount, PageCount) = default;
  constexpr PageCount& operator+=(PageCount o) { return value += o.value, *this; }
  constexpr PageCount& operator-=(PageCount o) { return value -= o.value, *this; }
  friend constexpr PageCount operator+(PageCount a, PageCount b) {
    return PageCount{a.value + b.value};
  }
  friend constexpr PageCount operator-(PageCount a, PageCount b) {
    return PageCount{a.value - b.value};
  }
};

/// `pages` pages of `page` bytes each.
constexpr Bytes to_bytes(PageCount pages, Bytes page) { return page * pages.value; }

/// The pages that `bytes` needs, the last one perhaps partly used. At most 2^32 - 1 pages.
constexpr PageCount pages_for(Bytes bytes, Bytes page) {
  return PageCount{static_cast<std::uint32_t>((bytes.count + page.count - 1) / page.count)};
}

/// A device virtual address.
struct DeviceAddress {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(DeviceAddress, DeviceAddress) = default;
  friend constexpr bool operator==(DeviceAddress, DeviceAddress) = default;
  friend constexpr DeviceAddress operator+(DeviceAddress a, Bytes b) {
    return DeviceAddress{a.value + b.count};
  }
  friend constexpr DeviceAddress operator-(DeviceAddress a, Bytes b) {
    return DeviceAddress{a.value - b.count};
  }
  friend constexpr Bytes operator-(DeviceAddress a, DeviceAddress b) {
    return Bytes{a.value - b.value};
  }
};

/// The address as the pointer that kernels take.
inline void* to_pointer(DeviceAddress a) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(a.value));
}
inline DeviceAddress to_address(const void* p) {
  return DeviceAddress{reinterpret_cast<std::uintptr_t>(p)};
}

/// A run of device virtual addresses: [begin, begin + size).
struct VaRange {
  DeviceAddress begin;
  Bytes size;
  constexpr DeviceAddress end() const { return begin + size; }
  constexpr bool contains(DeviceAddress a) const { return a >= begin && a < end(); }
  friend constexpr auto operator<=>(const VaRange&, const VaRange&) = default;
  friend constexpr bool operator==(const VaRange&, const VaRange&) = default;
};

/// Nanoseconds on the driver's clock: real on a GPU, virtual on the simulated device.
struct Duration {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr bool operator==(Duration, Duration) = default;
  constexpr Duration& operator+=(Duration o) { return ns += o.ns, *this; }
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration{a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration{a.ns - b.ns}; }
};
constexpr Duration microseconds(std::int64_t us) { return Duration{us * 1000}; }
constexpr Duration milliseconds(std::int64_t ms) { return Duration{ms * 1'000'000}; }

}  // namespace v0
}  // namespace bursar
