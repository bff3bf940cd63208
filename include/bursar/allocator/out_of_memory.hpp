// SPDX-License-Identifier: Apache-2.0
// OutOfMemory: a std::bad_alloc that says what was asked, who held what, what was tried.
#pragma once

#include <array>
#include <new>
#include <string>

#include <bursar/allocator/allocator_stats.hpp>
#include <bursar/core/error.hpp>

namespace bursar {
inline namespace v0 {

/// The steps of the reclaim ladder, in order.
enum class ReclaimStep : std::uint8_t {
  passed_fences,
  own_idle,
  spare,
  driver_pools,
  other_domains,
  wait,
};
inline constexpr std::size_t kReclaimStepCount = 6;

struct OomReport {
  error cause{};  ///< kind over_budget or device_oom; asked, free, limit
  DomainId domain{};
  AllocatorStats held{};  ///< by the whole allocator on that device, at the time
  AllocatorStats domain_held{};
  std::array<Bytes, kReclaimStepCount> reclaimed{};  ///< by step
  Duration elapsed{};                                ///< on the driver's clock
};

class BURSAR_EXPORT OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const OomReport& report) noexcept;
  const char* what() const noexcept override;
  const OomReport& report() const noexcept { return report_; }

 private:
  OomReport report_;
  std::array<char, 512> text_{};
};

}  // namespace v0
}  // namespace bursar
