// SPDX-License-Identifier: Apache-2.0
// open_cuda_driver of a build that found no CUDA Toolkit: it says so.
#include <bursar/driver/cuda_driver.hpp>

namespace bursar {
inline namespace v0 {

result<std::shared_ptr<Driver>> open_cuda_driver() {
  return error{.kind = ErrorKind::not_supported,
               .message = "built without the CUDA Toolkit: build again with Toolkit 12.4 or newer"};
}

}  // namespace v0
}  // namespace bursar
