// SPDX-License-Identifier: Apache-2.0
// What the GPU tests share: the driver, streams, a kernel that runs until it is told to end, and
// a count of wrong words.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <bursar/allocator/allocator_options.hpp>
#include <bursar/driver/driver.hpp>

#include "gpu_kernels.hpp"

namespace bursar::test {

/// The one CudaDriver of the test program. Where there is none, ends the program: with code 4
/// (skipped), or as a failure when BURSAR_REQUIRE_GPU=1.
std::shared_ptr<Driver> gpu_driver();

/// What the environment asks for (BURSAR_CONF), so that the same tests run in other modes too.
AllocatorOptions gpu_options();
/// False in modes in which freed memory serves nobody, not even its own stream, at once.
bool reuses_at_once();
inline constexpr const char* kReusesLater = "in this mode freed memory does not serve at once";

/// Throws when a call of the CUDA runtime failed.
void check(cudaError_t code);
/// Throws when a call of the driver failed.
void check(DriverCode code);

/// A stream of the runtime that never waits for the legacy default stream, unless `blocking`.
class Stream {
 public:
  explicit Stream(bool blocking = false);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t raw() const { return stream_; }
  StreamHandle handle() const { return StreamHandle{stream_}; }
  void synchronize() const { check(cudaStreamSynchronize(stream_)); }
  bool busy() const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream's work.
class Marker {
 public:
  Marker();
  ~Marker();
  Marker(const Marker&) = delete;
  Marker& operator=(const Marker&) = delete;

  void record(const Stream& stream) const { check(cudaEventRecord(event_, stream.raw())); }
  /// What `stream` does from now on comes after the point.
  void hold_back(const Stream& stream) const {
    check(cudaStreamWaitEvent(stream.raw(), event_, 0));
  }
  /// The work before the point is not done yet.
  bool pending() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// What `second` does from now on comes after what `first` was given so far.
void let_follow(const Stream& first, const Stream& second);

/// This device maps an extent at several addresses at once.
bool has_aliases();
/// Programmatic dependent launch exists on this device.
bool launches_early();

/// A kernel that keeps a stream busy until open(). Make every gate before the first one runs:
/// its flag is host memory, whose allocation may wait for running kernels.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Puts the kernel on `stream`. It gives up by itself after 20 s.
  void hold(const Stream& stream);
  void open() { *flag_ = 1; }

 private:
  volatile int* flag_ = nullptr;
};

/// Counts words that are not what they should be, on the device, in stream order.
class MismatchCounter {
 public:
  MismatchCounter();
  ~MismatchCounter();
  MismatchCounter(const MismatchCounter&) = delete;
  MismatchCounter& operator=(const MismatchCounter&) = delete;

  void expect(const void* memory, Bytes size, std::uint32_t value, const Stream& stream,
              Launch how = Launch::ordinary);
  /// Waits for the whole device.
  unsigned long long total() const;
  /// What is counted by now; waits for nothing.
  unsigned long long seen() const;
  /// total() since the last call.
  unsigned long long more();
  unsigned long long* on_device() const { return count_; }

 private:
  unsigned long long* count_ = nullptr;
  unsigned long long told_ = 0;
};

/// launch_fill in bytes.
void fill(void* memory, Bytes size, std::uint32_t value, const Stream& stream,
          Launch how = Launch::ordinary);

/// Prints a line of JSON and, where the environment names a folder OUT, appends it to
/// OUT/`file`.jsonl.
void report(const std::string& file, const std::string& json);

/// An extent with any number of mappings, made through the seam and given back by the destructor.
class MappedExtent {
 public:
  explicit MappedExtent(Bytes size, ExtentProperties properties = {});
  /// Adopts an extent, e.g. an imported one.
  MappedExtent(ExtentHandle extent, Bytes size)
      : driver_(gpu_driver()), extent_(extent), size_(size) {}
  ~MappedExtent();
  MappedExtent(const MappedExtent&) = delete;
  MappedExtent& operator=(const MappedExtent&) = delete;

  /// Maps the extent, readable and writable, at a new address.
  VaRange map();
  /// Takes the mapping at `range` away and its addresses back.
  void unmap(VaRange range);
  ExtentHandle handle() const { return extent_; }

 private:
  std::shared_ptr<Driver> driver_;
  ExtentHandle extent_{};
  Bytes size_{};
  std::vector<VaRange> ranges_;
};

}  // namespace bursar::test
