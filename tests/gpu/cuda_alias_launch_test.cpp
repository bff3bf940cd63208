// SPDX-License-Identifier: Apache-2.0
// Memory that one kernel used and the next one of the stream gets, where the next may start before
// the one in front has ended (programmatic dependent launch). Each case is run with the memory at
// the same address, as any allocator would reuse it, and at another address of the same extent, as
// this one does when it moves or stitches: what is wrong with both is no fault of aliases.
#include <cstdint>
#include <optional>
#include <string>

#include "alias_kernels.hpp"
#include "combination.hpp"
#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {

constexpr unsigned kRounds = 10;
constexpr std::uint32_t kOld = 0x0b0b'0b0b;
constexpr std::uint32_t kNew = 0x2e2e'2e2e;

struct Pair {
  Place place = Place::same_address;
  FirstUse use = FirstUse::reads;
  Release release = Release::at_once;
  Launch launch = Launch::ordinary;  ///< of the second kernel
  Wait wait = Wait::first;           ///< of the second kernel
  bool hasty_between = false;        ///< a kernel that waits for nothing runs between the two

  std::string text() const;
  /// CUDA orders the second kernel's writes after all that the first does.
  bool ordered() const {
    return launch == Launch::ordinary || (wait == Wait::first && !hasty_between);
  }
};

std::string Pair::text() const {
  std::string text = use == FirstUse::reads ? "reader" : "writer";
  if (release == Release::at_once) text += " that lets others start";
  if (hasty_between) text += ", hasty kernel";
  if (launch == Launch::ordinary) return text + ", ordinary writer";
  switch (wait) {
    case Wait::first: return text + ", early writer that waits first";
    case Wait::late: return text + ", early writer that waits late";
    case Wait::never: break;
  }
  return text + ", early writer that never waits";
}

/// The notes of both kernels, and the streams and memory they meet in.
class Meetings {
 public:
  Meetings() {
    meeting_.started = make<unsigned>();
    meeting_.met = make<unsigned long long>();
    meeting_.misread = wrong_.on_device();
  }
  ~Meetings() {
    cudaFree(meeting_.started);
    cudaFree(meeting_.met);
  }
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;

  Combination hold(const Pair& pair) {
    Combination row{pair.text(), pair.place, pair.ordered(), 0, 0, 0};
    for (unsigned round = 0; round < kRounds; ++round) meet(pair);
    // What the first kernel reads and what both leave: each counts.
    row.words = kRounds * words() * (pair.use == FirstUse::reads ? 2 : 1);
    row.wrong = wrong_.more();
    unsigned long long met = 0;
    check(cudaMemcpy(&met, meeting_.met, sizeof met, cudaMemcpyDeviceToHost));
    row.met = met - met_;
    met_ = met;
    return row;
  }

  /// Whether an event after a kernel that lets others start is over before that kernel is. It
  /// misreads every word, last of all, so a word not counted by then is an event too early.
  Combination fence(bool hasty_between) {
    Combination row{std::string("reader that lets others start, ") +
                        (hasty_between ? "hasty kernel, event" : "event"),
                    Place::same_address,
                    true,
                    kRounds * words(),
                    0,
                    0};
    for (unsigned round = 0; round < kRounds; ++round) {
      ++number_;
      fill(to_pointer(old_place_.begin), size(), kOld, stream_);
      launch_first(meeting_, number_, FirstUse::reads, Release::at_once, words_at(old_place_),
                   words(), kNew, stream_.raw());
      if (hasty_between) launch_hasty(stream_.raw());
      const Marker marker;
      marker.record(stream_);
      while (marker.pending()) {
      }
      const unsigned long long seen = wrong_.seen();
      row.wrong += wrong_.total() - seen;
    }
    (void)wrong_.more();
    return row;
  }

 private:
  template <class Number>
  static Number* make() {
    void* number = nullptr;
    check(cudaMalloc(&number, sizeof(Number)));
    check(cudaMemset(number, 0, sizeof(Number)));
    return static_cast<Number*>(number);
  }
  static Bytes size() { return gpu_driver()->device_info({}).granularity; }
  static std::size_t words() { return size().count / sizeof(std::uint32_t); }
  static std::uint32_t* words_at(VaRange range) {
    return static_cast<std::uint32_t*>(to_pointer(range.begin));
  }

  void meet(const Pair& pair) {
    ++number_;
    fill(to_pointer(old_place_.begin), size(), kOld, stream_);
    launch_first(meeting_, number_, pair.use, pair.release, words_at(old_place_), words(), kOld,
                 stream_.raw());
    if (pair.hasty_between) launch_hasty(stream_.raw());
    // Mapped while the first kernel runs, as the allocator does.
    std::optional<VaRange> alias;
    if (pair.place == Place::alias) alias = extent_.map();
    const VaRange new_place = alias.value_or(old_place_);
    launch_second(meeting_, number_, pair.wait, pair.launch, words_at(new_place), words(), kNew,
                  stream_.raw());
    check(cudaDeviceSynchronize());
    wrong_.expect(to_pointer(new_place.begin), size(), kNew, stream_);
    stream_.synchronize();
    if (alias) extent_.unmap(*alias);
  }

  Stream stream_;
  MappedExtent extent_{size()};
  VaRange old_place_ = extent_.map();
  MismatchCounter wrong_;
  Meeting meeting_;
  unsigned number_ = 0;
  unsigned long long met_ = 0;
};

}  // namespace

TEST_CASE("what a kernel may still use is not disturbed through another address by the next one",
          "[cuda][gpu][alias][launch]") {
  if (!has_aliases()) SKIP_TEST("this device maps an extent at one address only");
  if (!launches_early()) SKIP_TEST("this device has no programmatic dependent launch");
  Meetings meetings;
  Combinations table("launch");
  for (const Place place : {Place::same_address, Place::alias}) {
    for (const FirstUse use : {FirstUse::reads, FirstUse::writes}) {
      for (const Release release : {Release::at_once, Release::at_end}) {
        Pair pair{place, use, release};
        table.add(meetings.hold(pair));
        pair.launch = Launch::programmatic;
        for (const Wait wait : {Wait::first, Wait::late, Wait::never}) {
          pair.wait = wait;
          table.add(meetings.hold(pair));
        }
      }
      for (const Launch launch : {Launch::ordinary, Launch::programmatic}) {
        table.add(meetings.hold({place, use, Release::at_once, launch, Wait::first, true}));
      }
    }
  }
  table.judge();
}

TEST_CASE("an event is not over before all kernels in front of it, early ones between them or not",
          "[cuda][gpu][alias][launch]") {
  if (!launches_early()) SKIP_TEST("this device has no programmatic dependent launch");
  Meetings meetings;
  Combinations table("fence");
  table.add(meetings.fence(false));
  table.add(meetings.fence(true));
  table.judge();
}

TEST_CASE("a kernel that may start early does start before the one in front has ended",
          "[cuda][gpu][alias][launch]") {
  if (!launches_early()) SKIP_TEST("this device has no programmatic dependent launch");
  Meetings meetings;
  // Else the test above would show nothing.
  CHECK(meetings.hold({.launch = Launch::programmatic, .wait = Wait::first}).met > 0);
  CHECK(meetings.hold({.launch = Launch::programmatic, .wait = Wait::never}).wrong > 0);
  CHECK(meetings.hold({.launch = Launch::ordinary}).met == 0);
}
