// SPDX-License-Identifier: Apache-2.0
// The public headers in a .cu file: they compile, and what they define links. (nvcc 13 drops the
// equality that a defaulted ordering implies, which only the linker notices.)
#include "nvcc_headers.hpp"

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/allocator/out_of_memory.hpp>
#include <bursar/driver/cuda_driver.hpp>
#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {
namespace {

template <class T>
bool in_order(T small, T large) {
  return small == small && small != large && small < large;
}

}  // namespace

bool units_compare_in_cuda_files() {
  int things[2] = {};
  return in_order(Bytes{1}, Bytes{2}) && in_order(DeviceId{1}, DeviceId{2}) &&
         in_order(DomainId{1}, DomainId{2}) && in_order(StreamId{1}, StreamId{2}) &&
         in_order(PageCount{1}, PageCount{2}) && in_order(DeviceAddress{1}, DeviceAddress{2}) &&
         in_order(VaRange{{1}, Bytes{1}}, VaRange{{1}, Bytes{2}}) &&
         in_order(Duration{1}, Duration{2}) && in_order(ExtentHandle{1}, ExtentHandle{2}) &&
         in_order(StreamHandle{&things[0]}, StreamHandle{&things[1]}) &&
         in_order(EventHandle{&things[0]}, EventHandle{&things[1]});
}

}  // namespace bursar::test
