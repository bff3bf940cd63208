// SPDX-License-Identifier: Apache-2.0
// The killer of mutants: kept and random programs on a possibly broken library, until one of them
// is objected to. Prints who objected to what, and then exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/world.hpp"
#include "mutants/cache_scenarios.hpp"

using namespace bursar::test;

namespace {

constexpr std::uint32_t kSeeds = 150;
constexpr std::size_t kSteps = 600;

[[noreturn]] void object_to(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  std::_Exit(1);  // whatever the library would still do at exit, it is broken
}

void examine(const std::string& name, std::span<const std::uint8_t> bytes) {
  const std::optional<Finding> finding = run_program(bytes);
  if (!finding) return;
  object_to(to_string(finding->by) + (": " + name + ", " + finding->text));
}

void examine_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  examine(path.filename().string(), bytes);
}

/// Views made while the GPU is far behind, one kept at most: what random programs seldom meet.
void examine_views_behind_work() {
  using namespace bursar;
  SimOptions device;
  device.detector = true;
  const auto driver = std::make_shared<SimDriver>(device);
  AllocatorOptions options;
  options.stitch_limit = Bytes{4u << 20};
  options.guard = options.wide_guard = 0;
  options.map_price = 0;
  options.max_views = 1;
  CachingAllocator allocator(driver, options);
  const StreamHandle stream = driver->create_stream();
  const StreamHandle other = driver->create_stream();
  std::uint64_t generation = 0;
  const auto get_on = [&](StreamHandle home, unsigned mib) {
    AllocateOptions on;
    on.stream = home;
    void* block = allocator.allocate(std::size_t{mib} << 20, on);
    const SimAccess access{bursar::to_address(block), Bytes{std::uint64_t{mib} << 20},
                           ++generation};
    driver->launch(home, milliseconds(50), {&access, 1});
    return block;
  };
  const auto get = [&](unsigned mib) { return get_on(stream, mib); };
  std::vector<void*> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(get(4));
  for (std::size_t i = 0; i < blocks.size(); i += 2) allocator.deallocate(blocks[i]);
  for (const unsigned mib : {24u, 28u, 32u, 36u}) {
    allocator.deallocate(get(mib));
    allocator.deallocate(blocks[(mib - 24) / 2 + 1]);  // one more hole: the next view is larger
  }
  get_on(other, 36);      // the last view fits, but its work on the first stream still runs
  get_on(other, 44);      // what is idle there could be stitched, but for the same reason is not
  AllocateOptions small;  // a page of its zone: an idle extent leaves its home and all views
  small.stream = stream;
  (void)allocator.allocate(1000, small);
  get(64);  // a miss: whatever may go now goes
  if (driver->violations().empty()) return;
  object_to("detector: views behind work, " + driver->violations().front().text);
}

/// A domain takes over what another has left, while clearing fails, or while the extent is still
/// mapped where it was before: what random programs seldom meet.
void examine_clearing(bool still_mapped) {
  using namespace bursar;
  SimOptions device;
  device.capacity = Bytes{16u << 20};
  device.backed = true;
  const auto driver = std::make_shared<SimDriver>(device);
  AllocatorOptions options;
  options.max_extent = Bytes{2u << 20};
  options.stitch_limit = Bytes::max();
  options.scrub = Scrub::cross_domain;
  CachingAllocator allocator(driver, options);
  const StreamHandle stream = driver->create_stream();
  const StreamRef streams[] = {stream};
  const auto get = [&](DomainId domain, unsigned mib) {
    AllocateOptions on;
    on.stream = stream;
    on.domain = domain;
    return allocator.try_allocate(std::size_t{mib} << 20, on);
  };
  const DomainId giver = *allocator.create_domain({.name = "giver"});
  const DomainId taker = *allocator.create_domain({.name = "taker"});
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(*get(giver, 2));
  driver->launch(stream, milliseconds(5));
  for (std::size_t i = 0; i < blocks.size(); i += 2) allocator.deallocate(blocks[i]);
  void* whole = *get(giver, 8);  // by alias: their old mappings wait for the work
  std::memset(whole, 0x5C, std::size_t{8} << 20);
  allocator.deallocate(whole);
  driver->fail(still_mapped ? DriverCall::unmap : DriverCall::memset, 1, still_mapped,
               DriverCode::unknown);
  driver->synchronize_device();
  allocator.trim(Bytes::max(), {}, streams);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const result<void*> block = get(taker, 4);
    if (!block) continue;
    const auto* bytes = static_cast<const unsigned char*>(*block);
    if (std::count(bytes, bytes + (4 << 20), 0) == 4 << 20) return;
    object_to("harness: a domain reads what another has written");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: killer CORPUS\n");
    return 2;
  }
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    kept.push_back(entry.path());
  }
  std::sort(kept.begin(), kept.end());
  if (const std::string objection = examine_thread_caches(); !objection.empty()) {
    object_to(objection);
  }
  examine_views_behind_work();
  examine_clearing(false);
  examine_clearing(true);
  for (const std::filesystem::path& path : kept) examine_file(path);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    examine("seed " + std::to_string(seed), random_bytes(seed, kSteps));
  }
  return 0;
}
