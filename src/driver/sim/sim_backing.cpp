// SPDX-License-Identifier: Apache-2.0
// Memory and addresses of the simulated device: pretended, or real through memfd.
#include "sim_backing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace bursar {
inline namespace v0 {
namespace {

class Unbacked final : public SimBacking {
 public:
  std::optional<SimStorage> create(Bytes size, bool own_file) override {
    if (!own_file) return SimStorage{};
    // Shareable extents still need a name that other processes can be sent.
    const int fd = make_memfd(size);
    if (fd < 0) return std::nullopt;
    return SimStorage{fd, 0, true};
  }
  void destroy(const SimStorage& storage, Bytes) override {
    if (storage.own_file) ::close(storage.fd);
  }

  std::optional<DeviceAddress> reserve(Bytes size, Bytes alignment, DeviceAddress hint) override {
    const bool hinted = usable(hint, size, alignment);
    const std::uint64_t begin = hinted ? hint.value : round_up(Bytes{next_}, alignment).count;
    if (begin > kLast) return std::nullopt;
    // One page stays free behind each range, so that running over an end is never a hit.
    next_ = std::max(next_, begin + size.count + alignment.count);
    taken_.emplace(begin, size.count);
    return DeviceAddress{begin};
  }
  void unreserve(VaRange range) override { taken_.erase(range.begin.value); }
  bool map(VaRange, const SimStorage&) override { return true; }
  bool allow(VaRange) override { return true; }
  bool unmap(VaRange) override { return true; }
  void fill(VaRange, std::uint8_t) override {}
  bool read(DeviceAddress, std::span<std::byte>) override { return false; }

 private:
  static constexpr std::uint64_t kFirst = std::uint64_t{1} << 45;
  static constexpr std::uint64_t kLast = std::uint64_t{1} << 62;

  bool usable(DeviceAddress hint, Bytes size, Bytes alignment) const {
    if (hint.value < kFirst || hint.value > kLast || !is_aligned(Bytes{hint.value}, alignment)) {
      return false;
    }
    const auto after = taken_.lower_bound(hint.value);
    if (after != taken_.end() && after->first - hint.value < size.count) return false;
    if (after == taken_.begin()) return true;
    const auto before = std::prev(after);
    return before->first + before->second <= hint.value;
  }

  std::uint64_t next_ = kFirst;
  std::map<std::uint64_t, std::uint64_t> taken_;
};

class Backed final : public SimBacking {
 public:
  ~Backed() override {
    if (arena_ >= 0) ::close(arena_);
  }

  std::optional<SimStorage> create(Bytes size, bool own_file) override {
    if (own_file) {
      const int fd = make_memfd(size);
      if (fd < 0) return std::nullopt;
      return SimStorage{fd, 0, true};
    }
    // Thousands of extents would run out of descriptors: those that are never sent anywhere share
    // one sparse file, each at an offset that is used once.
    if (arena_ < 0) arena_ = make_memfd(kArenaSize);
    if (arena_ < 0) return std::nullopt;
    const SimStorage storage{arena_, arena_end_, false};
    arena_end_ += round_up(size, kHostPage).count;
    return storage;
  }
  void destroy(const SimStorage& storage, Bytes size) override {
    if (storage.own_file) {
      ::close(storage.fd);
    } else {
      ::fallocate(storage.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(storage.offset),
                  static_cast<off_t>(round_up(size, kHostPage).count));
    }
  }

  std::optional<DeviceAddress> reserve(Bytes size, Bytes alignment, DeviceAddress hint) override {
    if (hint.value != 0 && is_aligned(Bytes{hint.value}, alignment)) {
      if (void* at = place(hint, size, MAP_FIXED_NOREPLACE)) return to_address(at);
    }
    const std::optional<Bytes> room = checked_add(size, alignment);
    void* whole = room ? place({}, *room, 0) : nullptr;
    if (whole == nullptr) return std::nullopt;
    const DeviceAddress begin{round_up(Bytes{to_address(whole).value}, alignment).count};
    const DeviceAddress whole_end = to_address(whole) + *room;
    cut(VaRange{to_address(whole), begin - to_address(whole)});
    cut(VaRange{begin + size, whole_end - (begin + size)});
    return begin;
  }
  void unreserve(VaRange range) override { cut(range); }

  bool map(VaRange range, const SimStorage& storage) override {
    return ::mmap(to_pointer(range.begin), range.size.count, PROT_NONE, MAP_SHARED | MAP_FIXED,
                  storage.fd, static_cast<off_t>(storage.offset)) != MAP_FAILED;
  }
  bool allow(VaRange range) override {
    return ::mprotect(to_pointer(range.begin), range.size.count, PROT_READ | PROT_WRITE) == 0;
  }
  bool unmap(VaRange range) override {
    return place(range.begin, range.size, MAP_FIXED) != nullptr;
  }
  void fill(VaRange range, std::uint8_t value) override {
    std::memset(to_pointer(range.begin), value, range.size.count);
  }
  bool read(DeviceAddress at, std::span<std::byte> out) override {
    std::memcpy(out.data(), to_pointer(at), out.size());
    return true;
  }

 private:
  static constexpr Bytes kHostPage{4096};
  static constexpr Bytes kArenaSize{std::uint64_t{1} << 50};

  static void* place(DeviceAddress at, Bytes size, int flags) {
    void* got = ::mmap(to_pointer(at), size.count, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    return got == MAP_FAILED ? nullptr : got;
  }
  static void cut(VaRange range) {
    if (range.size.count > 0) ::munmap(to_pointer(range.begin), range.size.count);
  }

  int arena_ = -1;
  std::uint64_t arena_end_ = 0;
};

}  // namespace

std::unique_ptr<SimBacking> make_unbacked() { return std::make_unique<Unbacked>(); }
std::unique_ptr<SimBacking> make_backed() { return std::make_unique<Backed>(); }

int make_memfd(Bytes size) {
  const int fd = ::memfd_create("bursar-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (::ftruncate(fd, static_cast<off_t>(size.count)) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace v0
}  // namespace bursar
