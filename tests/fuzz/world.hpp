// SPDX-License-Identifier: Apache-2.0
// World: a device, an allocator and a well-behaved program that uses it, with everything checked
// after each step.
//
// The program keeps to the rules of stream order, so whatever the detector, validate() or the
// World's own books (who holds which addresses, what each byte should read, what was asked in which
// domain) object to is a fault of the library. The books are kept apart from the allocator's.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>

#include "fuzz/hooked_driver.hpp"
#include "fuzz/operation.hpp"

namespace bursar::test {

/// What was wrong, and who saw it.
struct Finding {
  enum class By { detector, validate, harness };
  By by{};
  std::string text;
};

/// "detector", "validate", "harness".
const char* to_string(Finding::By by);

class World {
 public:
  explicit World(const Setup& setup);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Does one step and checks everything. Throws a Finding.
  void run(const Operation& operation);
  /// Gives every block back, then the allocator: all memory must be reclaimable while it lives, and
  /// nothing be left in the driver after it. Throws a Finding. Nothing may be run afterwards.
  void finish();

 private:
  static constexpr std::size_t kStreams = 4;
  static constexpr std::size_t kDomains = 4;  // the first is the default one
  static constexpr std::size_t kGone = kStreams;

  struct Stream {
    StreamHandle handle{};
    StreamRef resolved{};
    bool capturing = false;
  };
  struct Domain {
    DomainId id = kDefaultDomain;
    Bytes limit = Bytes::max();
  };
  struct Live {
    std::byte* pointer = nullptr;
    Bytes asked{};
    Bytes usable{};
    std::uint64_t generation = 0;
    std::size_t home = 0;     ///< kGone: its stream was destroyed
    EventHandle home_done{};  ///< then: the end of that stream
    DomainId domain{};
  };

  // world_steps.cpp
  void step(const Operation& operation);
  void step_inside(const Operation& operation);
  void allocate(const Operation& operation);
  void deallocate(const Operation& operation);
  void deallocate_elsewhere(const Operation& operation);
  void record(const Operation& operation);
  void trim(const Operation& operation);
  void replace_stream(std::size_t index);
  void many_streams();
  void inject_fault(const Operation& operation);
  void set_limit(std::size_t index, Bytes limit);
  void replace_domain(std::size_t index, Bytes limit);
  void toggle_capture(std::size_t index);
  void bad_pointer(const Operation& operation);

  // world.cpp: the program's side
  std::optional<Live> take(std::size_t index);
  void put_back(const Live& block);
  void give_back(const Live& block);
  StreamRef name(std::size_t index, bool raw);
  void launch(std::size_t stream, const Live& block, Duration duration);
  bool order_after_home(std::size_t stream, const Live& block);
  EventHandle event_on(StreamHandle stream);
  const Live& enter(void* pointer, Bytes asked, const AllocateOptions& options, std::size_t home);
  void fill(const Live& block);
  void verify(const Live& block) const;
  void expect_clean(const Live& block) const;
  void expect_guarded(const Live& block, const AllocateOptions& options) const;

  // world_checks.cpp
  [[noreturn]] static void object(Finding::By by, std::string text);
  static void expect(bool truth, const char* text);
  void expect_reason(const error& failure, const Domain& domain, bool capturing) const;
  void check() const;
  void check_detector() const;
  void check_books() const;
  void check_domains() const;
  void reclaim_everything();
  void check_leaks() const;

  Setup setup_;
  Bytes page_;
  std::shared_ptr<HookedDriver> driver_;
  std::unique_ptr<CachingAllocator> allocator_;
  std::array<Stream, kStreams> streams_;
  std::array<Domain, kDomains> domains_;
  std::map<const std::byte*, Live> live_;      ///< by address
  std::map<std::uint64_t, DomainId> writers_;  ///< who has written which words (cross_domain)
  std::vector<EventHandle> events_;
  std::uint64_t generation_ = 0;
  std::size_t domains_made_ = 0;
  bool faulty_ = false;      ///< a fault may strike, or has and was not undone yet
  bool interleave_ = false;  ///< the next operation waits for a call on events
  bool inside_ = false;      ///< a step happens inside another
  std::optional<Finding> found_inside_;
  std::size_t retiring_ = kGone;  ///< the stream that is being retired: it gets no work
};

/// Runs the whole program that `bytes` spell; the first thing found, if any.
std::optional<Finding> run_program(std::span<const std::uint8_t> bytes);

}  // namespace bursar::test
