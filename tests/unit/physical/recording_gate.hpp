// SPDX-License-Identifier: Apache-2.0
// RecordingGate: an ExtentGate that remembers what each domain holds and refuses above one limit.
#pragma once

#include <map>

#include <bursar/physical/extent_gate.hpp>

namespace bursar::test {

class RecordingGate final : public ExtentGate {
 public:
  result<void> charge(DomainId domain, DeviceId, Bytes bytes) noexcept override {
    if (held[domain] + bytes > limit) {
      return error{.kind = ErrorKind::over_budget, .asked = bytes, .limit = limit};
    }
    held[domain] += bytes;
    return {};
  }
  void refund(DomainId domain, DeviceId, Bytes bytes) noexcept override { held[domain] -= bytes; }

  Bytes limit = Bytes::max();
  std::map<DomainId, Bytes> held;
};

}  // namespace bursar::test
