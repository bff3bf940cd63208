// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that pretends: what it claims and refuses is set by the test, and it notes under
// which circumstances each function was called. It shows how CudaDriver treats a driver, not what
// a driver does; that is the GPU suite's matter.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace bursar::test {

struct FakeCuda {
  struct Call {
    std::string name;
    CUcontext current = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  };

  // -- what it pretends --
  int version = 13000;
  int devices = 1;
  std::map<std::string, CUresult> refused;       ///< functions that fail, and how
  std::string missing;                           ///< a function it does not have
  std::map<CUdevice_attribute, int> attributes;  ///< 1 where not named
  bool refuses_rdma = false;
  bool refuses_fd = false;
  bool aliases = true;  ///< one extent at two addresses is one memory

  // -- what it saw --
  std::vector<Call> calls;
  std::vector<CUcontext> stack;  ///< contexts, the last is current
  std::vector<int> retained;     ///< references to each device's primary context
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  int live_extents = 0;
  int live_mappings = 0;
  int live_streams = 0;

  std::ptrdiff_t count(const std::string& name) const {
    return std::count_if(calls.begin(), calls.end(),
                         [&](const Call& call) { return call.name == name; });
  }
  /// Precondition: `name` was called.
  const Call& last(const std::string& name) const {
    return *std::find_if(calls.rbegin(), calls.rend(),
                         [&](const Call& call) { return call.name == name; });
  }
};

}  // namespace bursar::test

/// The fake's state, one a process. Assign a fresh one to start over.
extern "C" bursar::test::FakeCuda* fake_cuda();
