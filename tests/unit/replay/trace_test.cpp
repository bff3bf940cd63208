// SPDX-License-Identifier: Apache-2.0
// What a log may look like, and how each way of being wrong is reported.
#include "support/catch.hpp"
#include "support/scratch_file.hpp"

#include "replay/trace.hpp"

using namespace bursar;
using bursar::test::gzipped;
using bursar::test::log_of;
using bursar::test::ScratchFile;

namespace {

Trace read(const std::string& lines) {
  const ScratchFile file(log_of(lines));
  return read_trace(file.path());
}

/// What read_trace throws for `content`, without the file's path.
std::string refusal(const std::string& content, const std::string& suffix = ".csv") {
  const ScratchFile file(content, suffix);
  try {
    read_trace(file.path());
  } catch (const TraceError& e) {
    const std::string text = e.what();
    REQUIRE(text.starts_with(file.path()));
    return text.substr(file.path().size());
  }
  return "nothing was refused";
}

std::string refused_line(const std::string& lines) { return refusal(log_of(lines)); }

std::vector<std::int64_t> times(const Trace& trace) {
  std::vector<std::int64_t> all;
  for (const TraceEvent& event : trace.events) all.push_back(event.time.ns);
  return all;
}

}  // namespace

TEST_CASE("a log becomes events on numbered blocks and streams", "[replay][trace]") {
  const Trace trace = read(
      "0,0,allocate,7,100,9\n"
      "0,2,allocate,8,200,0\n"
      "0,3,free,7,100,9\n"
      "0,5,allocate,7,300,0\n");
  REQUIRE(trace.events.size() == 4);
  CHECK(trace.block_sizes == std::vector<Bytes>{Bytes{100}, Bytes{200}, Bytes{300}});
  CHECK(trace.stream_count == 2);
  CHECK(trace.events[0].stream == 0);
  CHECK(trace.events[1].stream == 1);
  CHECK(trace.events[2].action == TraceAction::free);
  CHECK(trace.events[2].block == 0);
  CHECK(trace.events[2].line == 4);
  CHECK(trace.events[3].block == 2);
  CHECK(trace.duration() == milliseconds(5));
}

TEST_CASE("a number below 1e9 is milliseconds since the start", "[replay][trace]") {
  const Trace trace = read("0,2,allocate,1,8,0\n0,2.5,free,1,8,0\n0,999999999,allocate,1,8,0\n");
  CHECK(times(trace) == std::vector<std::int64_t>{2'000'000, 2'500'000, 999'999'999'000'000});
}

TEST_CASE("a number from 1e9 on is seconds since the epoch", "[replay][trace]") {
  const Trace trace = read("0,1700000000.5,allocate,1,8,0\n0,1700000002,free,1,8,0\n");
  CHECK(times(trace) == std::vector<std::int64_t>{0, 1'500'000'000});
}

TEST_CASE("a time of day counts from the first event, over midnight too", "[replay][trace]") {
  const Trace trace = read(
      "0,23:59:59.250000,allocate,1,8,0\n"
      "0,23:59:59.250001,allocate,2,8,0\n"
      "0,00:00:01,free,1,8,0\n"
      "0,00:00:02.5,free,2,8,0\n");
  CHECK(times(trace) == std::vector<std::int64_t>{0, 1'000, 1'750'000'000, 3'250'000'000});
}

TEST_CASE("a small step back in time is no step", "[replay][trace]") {
  const Trace trace = read("0,5,allocate,1,8,0\n0,4,allocate,2,8,0\n0,6,free,1,8,0\n");
  CHECK(times(trace) == std::vector<std::int64_t>{5'000'000, 5'000'000, 6'000'000});
}

TEST_CASE("pointers and streams may be hexadecimal", "[replay][trace]") {
  const Trace trace = read("0x7f,0,allocate,0x7f00,8,0x2\n0,1,free,32512,8,2\n");
  CHECK(trace.block_sizes.size() == 1);
  CHECK(trace.stream_count == 1);
}

TEST_CASE("null is no block where nothing was asked, and the default stream", "[replay][trace]") {
  const Trace trace = read(
      "0,0,allocate,(nil),0,0\n"
      "0,0,free,(nil),0,0\n"
      "0,0,allocate,0x0,0,0\n"
      "0,0,allocate,0,64,(nil)\n"
      "0,0,allocate,1,64,0x0\n");
  CHECK(trace.events.size() == 2);
  CHECK(trace.stream_count == 1);
  CHECK_THAT(refused_line("0,0,allocate,(nil),64,0\n"), Catch::Matchers::StartsWith(":2: "));
}

TEST_CASE("failed allocations are counted, not replayed", "[replay][trace]") {
  const Trace trace = read("0,0,allocate failure,(nil),4096,0\n0,1,allocate,1,8,0\n");
  CHECK(trace.failures == 1);
  CHECK(trace.events.size() == 1);
}

TEST_CASE("line ends may be those of Windows, and the last may be missing", "[replay][trace]") {
  const ScratchFile file(
      "Thread,Time,Action,Pointer,Size,Stream\r\n0,0,allocate,1,8,0\r\n"
      "0,1,free,1,8,0");
  CHECK(read_trace(file.path()).events.size() == 2);
}

TEST_CASE("a log without events is an empty trace", "[replay][trace]") {
  CHECK(read("").events.empty());
  CHECK(read("").duration() == Duration{});
}

TEST_CASE("a compressed log reads as the plain one", "[replay][trace]") {
  std::string lines;
  for (int i = 0; i < 50'000; ++i) lines += "0,1,allocate," + std::to_string(i) + ",512,0\n";
  const ScratchFile file(gzipped(log_of(lines)), ".csv.gz");
  const Trace trace = read_trace(file.path());
  CHECK(trace.name == file.name());
  CHECK(trace.events.size() == 50'000);
  CHECK(trace.events.back().line == 50'001);
}

TEST_CASE("a truncated gzip is refused at the line that is cut off", "[replay][trace]") {
  const std::string whole = gzipped(log_of("0,1,allocate,1,512,0\n0,1,free,1,512,0\n"));
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 9), ".csv.gz"),
             bursar::test::contains("truncated gzip"));
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 1), ".csv.gz"),
             Catch::Matchers::StartsWith(":4: truncated gzip"));
}

TEST_CASE("a corrupt gzip is refused", "[replay][trace]") {
  std::string content = gzipped(log_of("0,1,allocate,1,512,0\n"));
  content[content.size() - 6] = static_cast<char>(content[content.size() - 6] ^ 1);
  CHECK_THAT(refusal(content, ".csv.gz"), bursar::test::contains("corrupt gzip"));
}

TEST_CASE("an absent file is refused with the system's reason", "[replay][trace]") {
  CHECK_THROWS_WITH(read_trace("/no/such/trace.csv"),
                    "/no/such/trace.csv:0: cannot open: No such file or directory");
}

TEST_CASE("a folder is no log", "[replay][trace]") {
  CHECK_THROWS_WITH(read_trace("/tmp"), bursar::test::contains("cannot read"));
}

TEST_CASE("a file without the header is refused", "[replay][trace]") {
  CHECK_THAT(refusal(""), Catch::Matchers::StartsWith(":1: expected the header"));
  CHECK_THAT(refusal("0,0,allocate,1,8,0\n"), Catch::Matchers::StartsWith(":1: expected"));
  CHECK_THAT(refusal(std::string(1'000'000, 'x')),
             Catch::Matchers::StartsWith(":1: line too long"));
}

TEST_CASE("a malformed line is refused with its number and what is wrong", "[replay][trace]") {
  const auto check = [](const char* line, const char* reason) {
    INFO(line);
    CHECK(refused_line("0,0,allocate,1,8,0\n" + std::string(line) + "\n") ==
          ":3: " + std::string(reason));
  };
  check("", "expected 6 fields, found 1");
  check("0,0,allocate,2,8", "expected 6 fields, found 5");
  check("0,0,allocate,2,8,0,0", "expected 6 fields, found 7");
  check("x,0,allocate,2,8,0", "bad thread 'x'");
  check("0,soon,allocate,2,8,0", "bad time 'soon'");
  check("0,-1,allocate,2,8,0", "time out of range '-1'");
  check("0,1e300,allocate,2,8,0", "bad time '1e300'");
  check("0,inf,allocate,2,8,0", "time out of range 'inf'");
  check("0,9000000000,allocate,2,8,0", "time out of range '9000000000'");
  check("0,24:00:00,allocate,2,8,0", "bad time '24:00:00'");
  check("0,1:02:03,allocate,2,8,0", "bad time '1:02:03'");
  check("0,01:02:03.,allocate,2,8,0", "bad time '01:02:03.'");
  check("0,01:02:03.0000000001,allocate,2,8,0", "bad time '01:02:03.0000000001'");
  check("0,01:02:03,allocate,2,8,0", "time of another kind than before");
  check("0,0,borrow,2,8,0", "unknown action 'borrow'");
  check("0,0,allocate,2x,8,0", "bad pointer '2x'");
  check("0,0,allocate,0x,8,0", "bad pointer '0x'");
  check("0,0,allocate,2,8.5,0", "bad size '8.5'");
  check("0,0,allocate,2,-8,0", "bad size '-8'");
  check("0,0,allocate,2,99999999999999999999,0", "bad size '99999999999999999999'");
  check("0,0,allocate,2,8,s", "bad stream 's'");
}

TEST_CASE("a free of what is not allocated is refused", "[replay][trace]") {
  CHECK(refused_line("0,0,free,0x10,8,0\n") == ":2: free of unknown pointer 0x10");
  CHECK(refused_line("0,0,allocate,1,8,0\n0,0,free,1,8,0\n0,0,free,1,8,0\n") ==
        ":4: free of unknown pointer 1");
}

TEST_CASE("an allocation of what is allocated is refused", "[replay][trace]") {
  CHECK(refused_line("0,0,allocate,1,8,0\n0,0,allocate,0x1,8,0\n") ==
        ":3: pointer 0x1 is allocated already");
}
