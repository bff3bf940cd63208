// SPDX-License-Identifier: Apache-2.0
// The bodies of gpu_fixture.hpp.
#include "gpu_fixture.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <bursar/driver/cuda_driver.hpp>

#include "alias_kernels.hpp"

namespace bursar::test {
namespace {

constexpr int kSkipped = 4;  // SKIP_RETURN_CODE in BursarTest.cmake
constexpr std::uint64_t kGateLimit = 20'000'000'000;

[[noreturn]] void no_gpu(const error& why) {
  const char* required = std::getenv("BURSAR_REQUIRE_GPU");
  const bool fails = required != nullptr && std::string_view(required) == "1";
  std::fprintf(stderr, "%s: %s\n", fails ? "a GPU is required" : "skipped", to_string(why).c_str());
  std::_Exit(fails ? EXIT_FAILURE : kSkipped);
}

}  // namespace

std::shared_ptr<Driver> gpu_driver() {
  static const std::shared_ptr<Driver> driver = [] {
    auto opened = open_cuda_driver();
    if (!opened) no_gpu(opened.failure());
    load_kernels();
    load_alias_kernels();
    return *opened;
  }();
  return driver;
}

AllocatorOptions gpu_options() {
  const result<AllocatorOptions> options = options_from_environment();
  if (!options) throw Error(options.failure());
  return *options;
}

bool reuses_at_once() {
  const AllocatorOptions options = gpu_options();
  return !options.passthrough && !options.redzones;
}

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

void check(DriverCode code) {
  if (code == DriverCode::success) return;
  throw std::runtime_error("CUresult " + std::to_string(static_cast<int>(code)));
}

Stream::Stream(bool blocking) {
  check(cudaStreamCreateWithFlags(&stream_, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
}

Stream::~Stream() { cudaStreamDestroy(stream_); }

bool Stream::busy() const {
  const cudaError_t code = cudaStreamQuery(stream_);
  if (code == cudaErrorNotReady) cudaGetLastError();  // it is no error, but is kept as the last one
  return code == cudaErrorNotReady;
}

Marker::Marker() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }

Marker::~Marker() { cudaEventDestroy(event_); }

bool Marker::pending() const {
  const cudaError_t code = cudaEventQuery(event_);
  if (code == cudaErrorNotReady) {
    cudaGetLastError();
    return true;
  }
  check(code);
  return false;
}

void let_follow(const Stream& first, const Stream& second) {
  const Marker event;
  event.record(first);
  event.hold_back(second);
}

bool has_aliases() { return gpu_driver()->device_info({}).capability == CapabilityLevel::full; }

bool launches_early() {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  return major >= 9;
}

Gate::Gate() {
  void* flag = nullptr;
  check(cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped));
  flag_ = static_cast<volatile int*>(flag);
  *flag_ = 0;
}

Gate::~Gate() {
  open();
  cudaDeviceSynchronize();
  cudaFreeHost(const_cast<int*>(flag_));
}

void Gate::hold(const Stream& stream) { launch_gate(flag_, kGateLimit, stream.raw()); }

MismatchCounter::MismatchCounter() {
  void* count = nullptr;
  check(cudaMalloc(&count, sizeof *count_));
  check(cudaMemset(count, 0, sizeof *count_));
  count_ = static_cast<unsigned long long*>(count);
  check(cudaDeviceSynchronize());
}

MismatchCounter::~MismatchCounter() { cudaFree(count_); }

void MismatchCounter::expect(const void* memory, Bytes size, std::uint32_t value,
                             const Stream& stream, Launch how) {
  launch_count_mismatches(static_cast<const std::uint32_t*>(memory),
                          size.count / sizeof(std::uint32_t), value, count_, stream.raw(), how);
}

unsigned long long MismatchCounter::total() const {
  check(cudaDeviceSynchronize());
  return seen();
}

unsigned long long MismatchCounter::seen() const {
  unsigned long long count = 0;
  check(cudaMemcpy(&count, count_, sizeof count, cudaMemcpyDeviceToHost));
  return count;
}

unsigned long long MismatchCounter::more() {
  const unsigned long long before = std::exchange(told_, total());
  return told_ - before;
}

void fill(void* memory, Bytes size, std::uint32_t value, const Stream& stream, Launch how) {
  launch_fill(static_cast<std::uint32_t*>(memory), size.count / sizeof(std::uint32_t), value,
              stream.raw(), how);
}

void report(const std::string& file, const std::string& json) {
  std::printf("%s\n", json.c_str());
  const char* folder = std::getenv("OUT");
  if (folder == nullptr) return;
  std::ofstream(std::string(folder) + "/" + file + ".jsonl", std::ios::app) << json << "\n";
}

MappedExtent::MappedExtent(Bytes size, ExtentProperties properties)
    : driver_(gpu_driver()), size_(size) {
  check(driver_->create({}, size, properties, extent_));
}

MappedExtent::~MappedExtent() {
  cudaDeviceSynchronize();
  for (const VaRange range : ranges_) {
    driver_->unmap(range);
    driver_->unreserve(range);
  }
  driver_->release(extent_);
}

VaRange MappedExtent::map() {
  VaRange range{};
  const DeviceId device{};
  check(driver_->reserve(size_, {}, range));
  check(driver_->map(range, extent_));
  ranges_.push_back(range);
  check(driver_->set_access(range, {&device, 1}));
  return range;
}

void MappedExtent::unmap(VaRange range) {
  ranges_.erase(std::find(ranges_.begin(), ranges_.end(), range));
  check(driver_->unmap(range));
  check(driver_->unreserve(range));
}

}  // namespace bursar::test
