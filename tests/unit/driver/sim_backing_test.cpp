// SPDX-License-Identifier: Apache-2.0
// Extents with real memory: aliases share bytes, descriptors travel.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

SimOptions backed() {
  SimOptions options;
  options.backed = true;
  return options;
}

unsigned char* bytes(VaRange range) { return static_cast<unsigned char*>(to_pointer(range.begin)); }

ExtentHandle shareable(SimFixture& f, Bytes size = kPage) {
  ExtentHandle extent;
  f.must(f.driver.create({}, size, {.shareable = true}, extent));
  return extent;
}

TEST_CASE("two mappings of one extent show the same bytes", "[driver][sim][backed]") {
  SimFixture f(backed());
  const ExtentHandle extent = f.extent();
  const VaRange a = f.mapped(extent);
  const VaRange b = f.mapped(extent);
  bytes(a)[12345] = 77;
  CHECK(bytes(b)[12345] == 77);
}

TEST_CASE("an extent keeps its bytes when it moves", "[driver][sim][backed]") {
  SimFixture f(backed());
  const ExtentHandle extent = f.extent();
  const VaRange before = f.mapped(extent);
  bytes(before)[5] = 55;
  f.must(f.driver.unmap(before));
  CHECK(bytes(f.mapped(extent))[5] == 55);
}

TEST_CASE("extents do not share bytes", "[driver][sim][backed]") {
  SimFixture f(backed());
  const VaRange a = f.mapped(f.extent());
  const VaRange b = f.mapped(f.extent());
  std::memset(bytes(a), 1, kPage.count);
  CHECK(bytes(b)[0] == 0);
  CHECK(bytes(b)[kPage.count - 1] == 0);
}

TEST_CASE("ranges are aligned to the granularity", "[driver][sim][backed]") {
  SimOptions options = backed();
  options.granularity = 64_MiB;
  SimFixture f(options);
  CHECK(is_aligned(Bytes{f.range(64_MiB).begin.value}, 64_MiB));
  CHECK(is_aligned(Bytes{f.range(128_MiB).begin.value}, 64_MiB));
}

TEST_CASE("a hint is followed to free real addresses", "[driver][sim][backed]") {
  SimFixture f(backed());
  const VaRange a = f.range(64_MiB);
  f.must(f.driver.unreserve(a));
  VaRange b{};
  f.must(f.driver.reserve(kPage, a.begin, b));
  VaRange c{};
  f.must(f.driver.reserve(kPage, b.begin, c));
  CHECK(c.begin != b.begin);
}

TEST_CASE("memset writes real bytes, and no others", "[driver][sim][backed]") {
  SimFixture f(backed());
  const VaRange at = f.mapped(f.extent());
  f.must(f.driver.memset({}, at.begin + 100_B, 0xAB, 50_B, {}));
  CHECK(bytes(at)[99] == 0);
  CHECK(bytes(at)[100] == 0xAB);
  CHECK(bytes(at)[149] == 0xAB);
  CHECK(bytes(at)[150] == 0);
}

TEST_CASE("a read gives the real bytes", "[driver][sim][backed]") {
  SimFixture f(backed());
  const VaRange at = f.mapped(f.extent());
  f.must(f.driver.memset({}, at.begin + 100_B, 0xAB, 50_B, {}));
  std::array<std::byte, 4> out{};
  f.must(f.driver.read({}, at.begin + 148_B, out));
  CHECK(out == std::array{std::byte{0xAB}, std::byte{0xAB}, std::byte{0}, std::byte{0}});
  CHECK(f.driver.read({}, at.end(), out) == invalid_value);
}

TEST_CASE("without real memory there is nothing to read", "[driver][sim]") {
  SimFixture f;
  std::array<std::byte, 4> out{};
  CHECK(f.driver.read({}, f.mapped(f.extent()).begin, out) == not_supported);
}

TEST_CASE("plain memory is real", "[driver][sim][backed]") {
  SimFixture f(backed());
  DeviceAddress a;
  DeviceAddress b;
  f.must(f.driver.malloc_plain({}, 1000_B, a));
  f.must(f.driver.malloc_plain({}, 1000_B, b));
  std::memset(to_pointer(a), 1, 1000);
  CHECK(*static_cast<unsigned char*>(to_pointer(b)) == 0);
  CHECK(f.driver.free_plain(a) == success);
}

TEST_CASE("thousands of extents need no descriptor each", "[driver][sim][backed]") {
  SimOptions options = backed();
  options.granularity = 64_KiB;
  SimFixture f(options);
  ExtentHandle out;
  for (int i = 0; i < 5000; ++i) f.must(f.driver.create({}, 64_KiB, {}, out));
  CHECK(f.driver.extent_bytes() == 64_KiB * 5000);
}

TEST_CASE("an imported descriptor is the exported extent", "[driver][sim][backed]") {
  SimFixture f(backed());
  const ExtentHandle extent = shareable(f);
  int fd = -1;
  f.must(f.driver.export_handle(extent, fd));
  ExtentHandle imported;
  REQUIRE(f.driver.import_handle({}, fd, kPage, imported) == success);
  ::close(fd);
  CHECK(imported != extent);
  bytes(f.mapped(extent))[9] = 99;
  CHECK(bytes(f.mapped(imported))[9] == 99);
}

TEST_CASE("an import holds the memory and costs none", "[driver][sim]") {
  SimFixture f;
  const ExtentHandle extent = shareable(f);
  int fd = -1;
  f.must(f.driver.export_handle(extent, fd));
  ExtentHandle imported;
  f.must(f.driver.import_handle({}, fd, kPage, imported));
  ::close(fd);
  CHECK(f.driver.extent_bytes() == kPage);
  f.must(f.driver.release(extent));
  CHECK(f.driver.extent_bytes() == kPage);
  f.must(f.driver.release(imported));
  CHECK(f.driver.extent_bytes() == 0_B);
}

TEST_CASE("the detector knows an imported extent's bytes again", "[driver][sim][detector]") {
  SimOptions options;
  options.detector = true;
  SimFixture f(options);
  const ExtentHandle extent = shareable(f);
  int fd = -1;
  f.must(f.driver.export_handle(extent, fd));
  ExtentHandle imported;
  f.must(f.driver.import_handle({}, fd, kPage, imported));
  ::close(fd);
  f.use(f.driver.create_stream(), f.mapped(extent), 1);
  f.use(f.driver.create_stream(), f.mapped(imported), 2);
  CHECK(count(f.driver, Violation::Kind::unordered_access) == 1);
}

TEST_CASE("only shareable extents are exported", "[driver][sim]") {
  SimFixture f;
  int fd = -1;
  CHECK(f.driver.export_handle(f.extent(), fd) == invalid_value);
  CHECK(f.driver.export_handle({777}, fd) == invalid_value);
  CHECK(fd == -1);
}

TEST_CASE("import refuses what is no extent of that size", "[driver][sim]") {
  SimFixture f;
  int fd = -1;
  f.must(f.driver.export_handle(shareable(f), fd));
  ExtentHandle out;
  CHECK(f.driver.import_handle({}, fd, 4_MiB, out) == invalid_value);
  CHECK(f.driver.import_handle({}, -1, kPage, out) == invalid_value);
  CHECK(f.driver.import_handle({3}, fd, kPage, out) == invalid_device);
  ::close(fd);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  CHECK(f.driver.import_handle({}, null, kPage, out) == invalid_value);
  ::close(null);
}

/// Sends or takes one descriptor over a Unix socket.
void send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (::sendmsg(socket, &message, 0) != 1) throw std::runtime_error("sendmsg");
}
int take_descriptor(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

/// The importing process: checks the byte, writes another. Returns its exit status.
int import_in_child(int socket) {
  SimFixture f(backed());
  const int fd = take_descriptor(socket);
  ExtentHandle extent;
  if (f.driver.import_handle({}, fd, kPage, extent) != success) return 1;
  ::close(fd);
  if (f.driver.extent_bytes() != 0_B) return 2;
  const VaRange at = f.mapped(extent);
  if (bytes(at)[7] != 70) return 3;
  bytes(at)[8] = 80;
  return 0;
}

TEST_CASE("a descriptor makes the round trip to another process", "[driver][sim][backed]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(import_in_child(ends[1]));
  SimFixture f(backed());
  const ExtentHandle extent = shareable(f);
  const VaRange at = f.mapped(extent);
  bytes(at)[7] = 70;
  int fd = -1;
  f.must(f.driver.export_handle(extent, fd));
  send_descriptor(ends[0], fd);
  ::close(fd);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(bytes(at)[8] == 80);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("in a forked child the parent's driver is not initialized", "[driver][sim]") {
  SimFixture f;
  const ExtentHandle extent = f.extent();
  const pid_t child = ::fork();
  if (child == 0) {
    StreamId id{};
    const bool refused = f.driver.release(extent) == not_initialized &&
                         f.driver.stream_id({}, {}, id) == not_initialized;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(f.driver.release(extent) == success);
}

}  // namespace
}  // namespace bursar::test
