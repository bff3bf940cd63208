// SPDX-License-Identifier: Apache-2.0
// What one operation wrote through one address, and the next reads through another: kernels with
// their caches, copies from and to the host and on the device, and memset; in one stream, and in
// two that an event orders. Nothing is waited for between the rounds, so each write also follows
// the read before it.
#include <cstdint>
#include <string>
#include <utility>

#include "alias_kernels.hpp"
#include "combination.hpp"
#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;
using namespace bursar::literals;

namespace {

constexpr unsigned kRounds = 40;
constexpr Bytes kSize = 8_MiB;
constexpr std::size_t kWords = kSize.count / sizeof(std::uint32_t);

enum class Writer { kernel, from_host, on_device, memset };
enum class Reader { kernel, read_only_kernel, to_host, on_device };

const char* to_string(Writer writer) {
  constexpr const char* names[] = {"kernel", "copy from the host", "copy on the device", "memset"};
  return names[static_cast<int>(writer)];
}
const char* to_string(Reader reader) {
  constexpr const char* names[] = {"kernel", "read-only kernel", "copy to the host",
                                   "copy on the device"};
  return names[static_cast<int>(reader)];
}

std::uint32_t* words(void* memory) { return static_cast<std::uint32_t*>(memory); }

/// An extent at two addresses, and plain memory to copy from and to.
class Desk {
 public:
  Desk() {
    check(cudaHostAlloc(&host_, kSize.count, cudaHostAllocDefault));
    check(cudaMalloc(&device_, kSize.count));
  }
  ~Desk() {
    cudaDeviceSynchronize();
    cudaFreeHost(host_);
    cudaFree(device_);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  Combination copies(Writer writer, Reader reader, Place place, bool two_streams) {
    const Stream& reads = two_streams ? other_ : stream_;
    for (unsigned round = 0; round < kRounds; ++round) {
      turn(place);
      const std::uint32_t value = next_value();
      if (two_streams) let_follow(reads, stream_);
      write(writer, value);
      if (two_streams) let_follow(stream_, reads);
      read(reader, value, reads);
    }
    return {std::string(to_string(writer)) + " writes, " + to_string(reader) + " reads" +
                (two_streams ? ", two streams" : ""),
            place,
            true,
            kRounds * kWords,
            wrong_.more(),
            0};
  }

  /// A kernel reads through one address what it has read there before, and what a kernel wrote
  /// meanwhile through the other. The reader's own path must not be used for what is written while
  /// it is resident, which early kernels are.
  Combination caches(Load load, Launch launch, Place place) {
    for (unsigned round = 0; round < kRounds; ++round) {
      if (round % 8 == 0) turn(place);
      const std::uint32_t value = next_value();
      launch_fill_shares(words(written_), kWords, value, launch, stream_.raw());
      launch_count_shares(words(read_), kWords, value, load, launch, wrong_.on_device(),
                          stream_.raw());
    }
    const bool early = launch == Launch::programmatic;
    return {std::string(early ? "early " : "ordinary ") + "kernels, " +
                (load == Load::cached ? "cached loads" : "read-only loads"),
            place,
            !early || load == Load::cached,
            kRounds * kWords,
            wrong_.more(),
            0};
  }

 private:
  /// The next round writes through the other address.
  void turn(Place place) {
    std::swap(written_, spare_);
    read_ = place == Place::alias ? spare_ : written_;
  }

  /// Four equal bytes, so that memset can write it too.
  std::uint32_t next_value() { return 0x0101'0101u * (++rounds_ % 256); }

  void write(Writer writer, std::uint32_t value) {
    const cudaStream_t stream = stream_.raw();
    switch (writer) {
      case Writer::kernel: return fill(written_, kSize, value, stream_);
      case Writer::from_host:
        fill(host_, kSize, value, stream_);
        return check(cudaMemcpyAsync(written_, host_, kSize.count, cudaMemcpyHostToDevice, stream));
      case Writer::on_device:
        fill(device_, kSize, value, stream_);
        return check(
            cudaMemcpyAsync(written_, device_, kSize.count, cudaMemcpyDeviceToDevice, stream));
      case Writer::memset:
        return check(
            cudaMemsetAsync(written_, static_cast<int>(value & 255u), kSize.count, stream));
    }
  }

  void read(Reader reader, std::uint32_t value, const Stream& stream) {
    switch (reader) {
      case Reader::kernel:
      case Reader::read_only_kernel:
        return launch_count_shares(words(read_), kWords, value,
                                   reader == Reader::kernel ? Load::cached : Load::read_only,
                                   Launch::ordinary, wrong_.on_device(), stream.raw());
      case Reader::to_host:
        check(cudaMemcpyAsync(host_, read_, kSize.count, cudaMemcpyDeviceToHost, stream.raw()));
        return wrong_.expect(host_, kSize, value, stream);
      case Reader::on_device:
        check(cudaMemcpyAsync(device_, read_, kSize.count, cudaMemcpyDeviceToDevice, stream.raw()));
        return wrong_.expect(device_, kSize, value, stream);
    }
  }

  Stream stream_;
  Stream other_;
  MappedExtent extent_{kSize};
  void* written_ = to_pointer(extent_.map().begin);
  void* spare_ = to_pointer(extent_.map().begin);
  void* read_ = nullptr;
  void* host_ = nullptr;
  void* device_ = nullptr;
  MismatchCounter wrong_;
  std::uint32_t rounds_ = 0;
};

constexpr const char* kNoAliases = "this device maps an extent at one address only";

}  // namespace

TEST_CASE("copies and kernels see through one address what was written through another",
          "[cuda][gpu][alias][copies]") {
  if (!has_aliases()) SKIP_TEST(kNoAliases);
  Desk desk;
  Combinations table("copies");
  for (const Place place : {Place::same_address, Place::alias}) {
    for (const bool two_streams : {false, true}) {
      for (const Writer writer :
           {Writer::kernel, Writer::from_host, Writer::on_device, Writer::memset}) {
        for (const Reader reader :
             {Reader::kernel, Reader::read_only_kernel, Reader::to_host, Reader::on_device}) {
          table.add(desk.copies(writer, reader, place, two_streams));
        }
      }
    }
  }
  table.judge();
}

TEST_CASE("no cache keeps what was overwritten through another address",
          "[cuda][gpu][alias][caches]") {
  if (!has_aliases()) SKIP_TEST(kNoAliases);
  Desk desk;
  Combinations table("caches");
  for (const Place place : {Place::same_address, Place::alias}) {
    for (const Load load : {Load::cached, Load::read_only}) {
      table.add(desk.caches(load, Launch::ordinary, place));
      if (launches_early()) table.add(desk.caches(load, Launch::programmatic, place));
    }
  }
  table.judge();
}
