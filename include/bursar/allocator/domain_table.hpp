// SPDX-License-Identifier: Apache-2.0
// DomainTable: who pays. Each domain's limit and what it holds on each device.
//
// A domain pays for the extents it holds, not for blocks: a cache hit costs nothing, and the sum of
// charges is the memory that exists. Reading is lock-free, since it happens on every miss; only
// making a domain takes a lock.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <bursar/core/lock_rank.hpp>
#include <bursar/physical/extent_gate.hpp>

namespace bursar {
inline namespace v0 {

/// Thread-safe.
class BURSAR_EXPORT DomainTable final : public ExtentGate {
 public:
  explicit DomainTable(int devices);

  /// A new domain; ids are never reused. invalid_argument once 65,536 have been made.
  result<DomainId> create(std::string name, Bytes limit);
  /// False for an id that was never given out.
  bool known(DomainId domain) const noexcept { return domain.value < count_.load(); }
  bool open(DomainId domain) const noexcept;
  void close(DomainId domain) noexcept;
  void set_limit(DomainId domain, Bytes limit) noexcept;
  Bytes limit(DomainId domain) const noexcept;
  Bytes charged(DomainId domain, DeviceId device) const noexcept;
  std::string name(DomainId domain) const;
  std::uint32_t count() const noexcept { return count_.load(); }

  result<void> charge(DomainId domain, DeviceId device, Bytes bytes) noexcept override;
  void refund(DomainId domain, DeviceId device, Bytes bytes) noexcept override;

 private:
  struct Row {
    std::string name;
    std::atomic<std::uint64_t> limit{0};
    std::atomic<bool> open{true};
    std::unique_ptr<std::atomic<std::uint64_t>[]> charged;  // by device
  };
  static constexpr std::uint32_t kChunk = 256;

  Row& row(DomainId d) const noexcept { return (*chunks_[d.value / kChunk])[d.value % kChunk]; }

  std::size_t devices_;
  RankedMutex<LockRank::registry> making_;
  std::atomic<std::uint32_t> count_{0};
  std::array<std::unique_ptr<std::array<Row, kChunk>>, kChunk> chunks_;
};

}  // namespace v0
}  // namespace bursar
