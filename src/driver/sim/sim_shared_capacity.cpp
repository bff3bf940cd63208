// SPDX-License-Identifier: Apache-2.0
// The capacity that several processes share: one small file in which every SimDriver has a slot
// with the bytes it holds.
//
// Nothing but the slots is stored, so nothing can contradict them: what is free is the capacity
// minus their sum. The lock is a robust one, so a process that dies inside it takes nobody along;
// each change is a single word, so there is no half-made one to repair. A process is known by its
// pid and start time. When it is found dead its bytes stay taken for `death_delay` of real time, as
// on a GPU, and then the slot is free again.
#include "sim_capacity.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

#include <bursar/core/error.hpp>

namespace bursar {
inline namespace v0 {
namespace {

constexpr char kMagic[16] = "bursar-sim-v1";
constexpr std::size_t kSlots = 256;
constexpr std::size_t kDevices = 16;

struct Process {
  std::int64_t pid = 0;          ///< 0: none
  std::uint64_t start_time = 0;  ///< in the kernel's ticks since boot
  friend bool operator==(const Process&, const Process&) = default;
};

struct Slot {
  Process owner;
  std::int64_t found_dead_ns;  ///< on the system's monotonic clock; 0: not found dead
  std::uint64_t held[kDevices];
};

struct SharedFile {
  char magic[16];
  std::uint64_t capacity;
  std::uint64_t granularity;
  std::uint64_t devices;
  pthread_mutex_t mutex;
  Slot slots[kSlots];
};

[[noreturn]] void fault(const char* message) {
  throw Error(error{ErrorKind::driver_fault, 0, message});
}

std::int64_t monotonic_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

/// The start time of a process that runs; 0 when it is gone, or a zombie.
std::uint64_t start_time_of(std::int64_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  char text[1024];
  text[std::fread(text, 1, sizeof text - 1, file)] = '\0';
  std::fclose(file);
  // The name, in parentheses, may hold anything; the state is the first field after it and the
  // start time the twentieth.
  const char* after_name = std::strrchr(text, ')');
  char state = 'X';
  unsigned long long start = 0;
  const char* const format =
      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
  if (after_name == nullptr || std::sscanf(after_name + 1, format, &state, &start) != 2) return 0;
  return state == 'Z' || state == 'X' ? 0 : start;
}

Process this_process() { return {::getpid(), start_time_of(::getpid())}; }

/// Opens the file, makes its contents when it is new, and maps it.
class Mapped {
 public:
  explicit Mapped(const SimOptions& options) {
    fd_ = ::open(options.shared_state.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) fault("the simulated device's shared state cannot be opened");
    try {
      open_contents(options);
    } catch (...) {
      ::close(fd_);
      throw;
    }
    ::flock(fd_, LOCK_UN);
  }
  ~Mapped() {
    ::munmap(file_, sizeof(SharedFile));
    ::close(fd_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  SharedFile* operator->() const { return file_; }

 private:
  void open_contents(const SimOptions& options) {
    struct stat info {};
    if (::flock(fd_, LOCK_EX) != 0 || ::fstat(fd_, &info) != 0) {
      fault("the simulated device's shared state cannot be locked");
    }
    const bool fresh = info.st_size == 0;
    if (!fresh && info.st_size != static_cast<off_t>(sizeof(SharedFile))) {
      fault("the file is not a simulated device's shared state: its size is wrong");
    }
    if (fresh && ::ftruncate(fd_, sizeof(SharedFile)) != 0) {
      fault("the simulated device's shared state cannot be made");
    }
    void* at = ::mmap(nullptr, sizeof(SharedFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED) fault("the simulated device's shared state cannot be mapped");
    file_ = static_cast<SharedFile*>(at);
    if (fresh) fill(options);
    if (const char* why = mismatch(options)) {
      ::munmap(file_, sizeof(SharedFile));
      fault(why);
    }
  }

  void fill(const SimOptions& options) {
    file_->capacity = options.capacity.count;
    file_->granularity = options.granularity.count;
    file_->devices = static_cast<std::uint64_t>(options.devices);
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&file_->mutex, &attributes);
    ::pthread_mutexattr_destroy(&attributes);
    std::memcpy(file_->magic, kMagic, sizeof kMagic);  // last: an unfinished file is none
  }

  const char* mismatch(const SimOptions& options) const {
    if (std::memcmp(file_->magic, kMagic, sizeof kMagic) != 0) {
      return "the file is not a simulated device's shared state, or an unfinished one";
    }
    if (file_->capacity != options.capacity.count ||
        file_->granularity != options.granularity.count ||
        file_->devices != static_cast<std::uint64_t>(options.devices)) {
      return "the shared state was made for another capacity, granularity or number of devices";
    }
    return nullptr;
  }

  int fd_ = -1;
  SharedFile* file_ = nullptr;
};

class SharedCapacity final : public SimCapacity {
 public:
  explicit SharedCapacity(const SimOptions& options)
      : devices_(static_cast<std::size_t>(options.devices)),
        death_delay_(options.death_delay),
        self_(this_process()),
        file_(options) {
    const Guard guard(file_->mutex);
    retire_dead();
    if (!has_room_everywhere(options.context.count)) {
      fault("the shared device has no room for this process's context");
    }
    for (Slot& slot : file_->slots) {
      if (slot.owner.pid != 0) continue;
      slot_ = &slot;
      break;
    }
    if (slot_ == nullptr) fault("too many processes share the simulated device: 256 at most");
    slot_->found_dead_ns = 0;
    for (std::size_t i = 0; i < kDevices; ++i) {
      slot_->held[i] = i < devices_ ? options.context.count : 0;
    }
    slot_->owner = self_;
  }
  ~SharedCapacity() override {
    if (::getpid() != self_.pid) return;  // a forked child: the slot is its parent's
    const Guard guard(file_->mutex);
    slot_->owner = Process{};
  }

  bool take(DeviceId device, Bytes bytes) noexcept override {
    const Guard guard(file_->mutex);
    const std::size_t i = index(device);
    if (free_of(i) < bytes.count) retire_dead();
    if (free_of(i) < bytes.count) return false;
    slot_->held[i] += bytes.count;
    return true;
  }
  void give(DeviceId device, Bytes bytes) noexcept override {
    const Guard guard(file_->mutex);
    slot_->held[index(device)] -= bytes.count;
  }
  Bytes free(DeviceId device) noexcept override {
    const Guard guard(file_->mutex);
    retire_dead();
    return Bytes{free_of(index(device))};
  }

 private:
  class Guard {
   public:
    explicit Guard(pthread_mutex_t& mutex) : mutex_(mutex) {
      if (::pthread_mutex_lock(&mutex_) == EOWNERDEAD) ::pthread_mutex_consistent(&mutex_);
    }
    ~Guard() { ::pthread_mutex_unlock(&mutex_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    pthread_mutex_t& mutex_;
  };

  static std::size_t index(DeviceId device) { return static_cast<std::size_t>(device.value); }

  std::uint64_t free_of(std::size_t device) const {
    std::uint64_t held = 0;
    for (const Slot& slot : file_->slots) {
      if (slot.owner.pid != 0) held += slot.held[device];
    }
    return file_->capacity - held;
  }
  bool has_room_everywhere(std::uint64_t bytes) const {
    for (std::size_t i = 0; i < devices_; ++i) {
      if (free_of(i) < bytes) return false;
    }
    return true;
  }
  /// Notes deaths, and frees the slots of processes dead for long enough.
  void retire_dead() {
    const std::int64_t now = monotonic_ns();
    for (Slot& slot : file_->slots) {
      if (slot.owner.pid == 0 || slot.owner == self_) continue;
      if (slot.found_dead_ns == 0) {
        if (start_time_of(slot.owner.pid) == slot.owner.start_time) continue;
        slot.found_dead_ns = now;
      }
      if (now - slot.found_dead_ns >= death_delay_.ns) slot.owner = Process{};
    }
  }

  const std::size_t devices_;
  const Duration death_delay_;
  const Process self_;
  Mapped file_;
  Slot* slot_ = nullptr;
};

}  // namespace

std::unique_ptr<SimCapacity> make_shared_capacity(const SimOptions& options) {
  return std::make_unique<SharedCapacity>(options);
}

}  // namespace v0
}  // namespace bursar
