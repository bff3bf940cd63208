// SPDX-License-Identifier: Apache-2.0
// In place of cuda_device.cpp where there is no CUDA Toolkit to build it with.
#include "cuda_device.hpp"

namespace bursar {
inline namespace v0 {

std::unique_ptr<ReplayDevice> make_cuda_device(std::shared_ptr<Driver>, std::optional<Bytes>) {
  error e;
  e.kind = ErrorKind::not_supported;
  e.message = "built without the CUDA Toolkit: only the simulated device can be replayed on";
  throw Error(e);
}

}  // namespace v0
}  // namespace bursar
