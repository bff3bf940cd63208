// SPDX-License-Identifier: Apache-2.0
// Crowd: threads that use one allocator in every way at once, each by the rules of stream order, so
// that whatever the detector, the canary or validate() object to is a fault of the library.
//
// Each thread has streams of its own and some that all share. Blocks go from thread to thread, are
// freed there, on their home stream or another, and are used on several streams. Memory is short.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {

struct CrowdOptions {
  std::size_t threads = 8;
  std::size_t own_streams = 4;     ///< of each thread
  std::size_t shared_streams = 4;  ///< of all
  std::uint32_t capacity_pages = 96;
  bool backed = false;  ///< real memory in small pages: every byte is verified on free
  std::chrono::milliseconds duration{3000};
  std::uint32_t seed = 1;
};

class Crowd {
 public:
  explicit Crowd(const CrowdOptions& options);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// Lets the threads work until the time is over. Returns what went wrong first, or nothing.
  std::string work();
  /// Gives everything back; what is left that should not be, or nothing. Ends the allocator.
  std::string finish();

  AllocatorStats stats() const { return allocator_->stats(); }
  std::uint64_t steps() const { return steps_.load(); }
  /// Blocks filled, their bytes; how many large ones were looked at, and lay in a view.
  std::uint64_t blocks() const { return generation_.load(); }
  std::uint64_t bytes() const { return bytes_.load(); }
  std::uint64_t looked_at() const { return looked_at_.load(); }
  std::uint64_t in_views() const { return in_views_.load(); }
  std::vector<Violation> violations() const { return driver_->violations(); }

 private:
  class Worker;
  struct Stream {
    StreamHandle handle{};
    std::atomic<int> blocks{0};  ///< live ones whose home it is
  };
  struct Live {
    std::byte* pointer = nullptr;
    Bytes size{};
    std::uint64_t generation = 0;
    Stream* home = nullptr;
  };
  struct Mailbox {
    std::mutex mutex;
    std::vector<Live> blocks;
  };

  /// Notes what went wrong, if it is the first.
  void object(const std::string& text);
  void expect(bool truth, const char* text) {
    if (!truth) object(text);
  }
  void order(const Stream& later, const Stream& earlier);
  void launch(const Stream& stream, const Live& block, Duration duration);
  void fill(const Live& block);
  void verify(const Live& block);

  CrowdOptions options_;
  Bytes page_;
  std::shared_ptr<SimDriver> driver_;
  std::unique_ptr<CachingAllocator> allocator_;
  DomainId shared_domain_{};
  std::vector<Stream> shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Mailbox> mailboxes_;  // by worker
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> looked_at_{0};
  std::atomic<std::uint64_t> in_views_{0};
  std::atomic<bool> failed_{false};
  std::mutex first_mutex_;
  std::string first_;
};

}  // namespace bursar::test
