// SPDX-License-Identifier: Apache-2.0
// Makes one memory error on purpose, in passthrough mode: compute-sanitizer must report it, and
// without compute-sanitizer the device itself does.
//
//   gpu_seeded_error none | overrun | underrun | use_after_free
#include <cstdio>
#include <exception>
#include <string_view>

#include <bursar/allocator/caching_allocator.hpp>

#include "gpu_fixture.hpp"

namespace {

using namespace bursar;
using namespace bursar::test;

constexpr Bytes kWord{4};

/// False for a name that is no error.
bool make_error(std::string_view name) {
  AllocatorOptions options;
  options.passthrough = true;
  CachingAllocator allocator(gpu_driver(), options);
  const Stream stream;
  const StreamRef streams[] = {stream.handle()};
  const auto get = [&](Bytes size) {
    return static_cast<char*>(allocator.allocate(size.count, {.stream = stream.handle()}));
  };
  const Bytes page = gpu_driver()->device_info({}).granularity;
  const Bytes odd{1008};  // a multiple of the least alignment, so the end is the mapping's
  char* small = get(odd);
  char* whole = get(page);  // begins with its first page
  fill(small, odd, 1, stream);
  fill(whole, page, 2, stream);
  if (name == "overrun") {
    fill(small + odd.count, kWord, 3, stream);
  } else if (name == "underrun") {
    fill(whole - kWord.count, kWord, 3, stream);
  } else if (name == "use_after_free") {
    allocator.deallocate(small);
    for (int i = 0; i < 100 && allocator.stats().pending > Bytes{}; ++i) {
      (void)allocator.trim(Bytes::max(), {}, streams);
      stream.synchronize();
    }
    fill(small, odd, 3, stream);
  } else if (name != "none") {
    return false;
  }
  stream.synchronize();
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && make_error(argv[1])) return 0;
  std::fprintf(stderr, "usage: gpu_seeded_error none | overrun | underrun | use_after_free\n");
  return 2;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "gpu_seeded_error: %s\n", failure.what());
  return 1;
}
