// SPDX-License-Identifier: Apache-2.0
// One device shared by several processes through a file.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <bursar/core/error.hpp>

#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

/// A folder of its own for the file, removed at the end.
class StateFile {
 public:
  StateFile() {
    std::string name = (std::filesystem::temp_directory_path() / "bursar-sim-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
  }
  ~StateFile() { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "device").string(); }

  SimOptions options(Duration death_delay = Duration{}) const {
    SimOptions o;
    o.capacity = 1_GiB;
    o.shared_state = path();
    o.death_delay = death_delay;
    return o;
  }

 private:
  std::filesystem::path folder_;
};

Bytes free_bytes(SimDriver& driver) {
  MemoryInfo info;
  SimFixture::must(driver.memory_info({}, info));
  return info.free;
}

/// A child process that holds 512 MiB until it is told to end; a busy one creates and releases more
/// without pause until it is killed.
class Holder {
 public:
  enum class Habit { still, busy };

  explicit Holder(const SimOptions& options, Habit habit = Habit::still) {
    if (::pipe(ready_) != 0 || ::pipe(end_) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) hold(options, habit);
    ::close(ready_[1]);
    ::close(end_[0]);
    await_beat();
  }
  ~Holder() {
    if (running_) kill();
    ::close(ready_[0]);
    ::close(end_[1]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  /// Waits for the child's sign that it holds its memory, or that a busy one has gone on.
  void await_beat() {
    char byte = 0;
    if (::read(ready_[0], &byte, 1) != 1) throw std::runtime_error("the holder failed");
  }
  /// Leaves no time to clean up. The process stays a zombie when not `reaped`.
  void kill(bool reaped = true) {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | (reaped ? 0 : WNOWAIT));
    running_ = !reaped;
  }
  /// Ends it in the ordinary way.
  void finish() {
    const char byte = 0;
    if (::write(end_[1], &byte, 1) != 1) throw std::runtime_error("write");
    ::waitpid(pid_, nullptr, 0);
    running_ = false;
  }

 private:
  [[noreturn]] void hold(const SimOptions& options, Habit habit) {
    {
      SimFixture f(options);
      f.extent(512_MiB);
      char byte = 0;
      if (::write(ready_[1], &byte, 1) != 1) ::_exit(1);
      while (habit == Habit::busy) {
        for (int i = 0; i < 20; ++i) f.must(f.driver.release(f.extent()));
        if (::write(ready_[1], &byte, 1) != 1) ::_exit(1);
      }
      if (::read(end_[0], &byte, 1) != 1) ::_exit(1);
    }
    ::_exit(0);
  }

  int ready_[2];
  int end_[2];
  pid_t pid_ = -1;
  bool running_ = true;
};

TEST_CASE("processes share one capacity", "[driver][sim][shared]") {
  StateFile file;
  SimFixture f(file.options());
  Holder holder(file.options());
  CHECK(free_bytes(f.driver) == 512_MiB);
  ExtentHandle out;
  CHECK(f.driver.create({}, 514_MiB, {}, out) == out_of_memory);
  CHECK(f.driver.create({}, 512_MiB, {}, out) == success);
  CHECK(free_bytes(f.driver) == 0_B);
}

TEST_CASE("a process that ends gives its bytes back at once", "[driver][sim][shared]") {
  StateFile file;
  SimFixture f(file.options(milliseconds(3'600'000)));
  Holder holder(file.options());
  holder.finish();
  CHECK(free_bytes(f.driver) == 1_GiB);
}

TEST_CASE("a killed process's bytes return", "[driver][sim][shared]") {
  StateFile file;
  SimFixture f(file.options());
  Holder holder(file.options());
  const bool reaped = GENERATE(true, false);  // gone, or still a zombie
  holder.kill(reaped);
  CHECK(free_bytes(f.driver) == 1_GiB);
}

TEST_CASE("a create finds a killed process's bytes by itself", "[driver][sim][shared]") {
  StateFile file;
  SimFixture f(file.options());
  Holder holder(file.options());
  holder.kill();
  CHECK_NOTHROW(f.extent(1_GiB));
}

TEST_CASE("a killed process's bytes stay taken for the death delay", "[driver][sim][shared]") {
  StateFile file;
  SimFixture patient(file.options(milliseconds(3'600'000)));
  SimFixture quick(file.options());
  Holder holder(file.options());
  holder.kill();
  CHECK(free_bytes(patient.driver) == 512_MiB);
  ExtentHandle out;
  CHECK(patient.driver.create({}, 1_GiB, {}, out) == out_of_memory);
  CHECK(free_bytes(quick.driver) == 1_GiB);  // to whom the delay is over
}

TEST_CASE("a process killed in the middle of a call harms nobody", "[driver][sim][shared]") {
  StateFile file;
  SimFixture f(file.options());
  for (int i = 0; i < 40; ++i) {
    Holder holder(file.options(), Holder::Habit::busy);
    for (int beats = 0; beats < 5; ++beats) holder.await_beat();
    holder.kill();
  }
  CHECK(free_bytes(f.driver) == 1_GiB);
}

TEST_CASE("each process pays for its context", "[driver][sim][shared]") {
  StateFile file;
  SimOptions options = file.options();
  options.context = 100_MiB;
  SimFixture first(options);
  {
    SimFixture second(options);
    CHECK(free_bytes(first.driver) == 824_MiB);
  }
  CHECK(free_bytes(first.driver) == 924_MiB);
  options.context = 925_MiB;
  CHECK_THROWS_AS(SimDriver(options), Error);
}

TEST_CASE("the state outlives its processes", "[driver][sim][shared]") {
  StateFile file;
  { SimFixture f(file.options()); }
  SimFixture again(file.options());
  CHECK(free_bytes(again.driver) == 1_GiB);
}

TEST_CASE("a forked child that leaves gives nothing of its parent's back",
          "[driver][sim][shared]") {
  StateFile file;
  auto f = std::make_unique<SimFixture>(file.options());
  f->extent(512_MiB);
  const pid_t child = ::fork();
  if (child == 0) {
    f.reset();
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  SimFixture other(file.options());
  CHECK(free_bytes(other.driver) == 512_MiB);
}

/// The message of the Error that opening `options` throws.
std::optional<std::string> refusal(const SimOptions& options) {
  try {
    SimDriver driver(options);
  } catch (const Error& e) {
    CHECK(e.details().kind == ErrorKind::driver_fault);
    return e.what();
  }
  return std::nullopt;
}

TEST_CASE("a bad file is refused with its reason", "[driver][sim][shared]") {
  StateFile file;
  SimOptions options = file.options();
  SECTION("of another size") {
    std::ofstream(file.path()) << "something else";
    REQUIRE(refusal(options));
    CHECK(refusal(options)->find("size") != std::string::npos);
  }
  SECTION("of other contents") {
    { SimDriver make(options); }
    std::fstream(file.path(), std::ios::in | std::ios::out | std::ios::binary) << "garbage";
    REQUIRE(refusal(options));
    CHECK(refusal(options)->find("not a simulated device's") != std::string::npos);
  }
  SECTION("made for another device") {
    { SimDriver make(options); }
    options.capacity = 2_GiB;
    REQUIRE(refusal(options));
    CHECK(refusal(options)->find("another capacity") != std::string::npos);
  }
  SECTION("in no folder") {
    options.shared_state = file.path() + "/nowhere";
    REQUIRE(refusal(options));
    CHECK(refusal(options)->find("opened") != std::string::npos);
  }
}

}  // namespace
}  // namespace bursar::test
