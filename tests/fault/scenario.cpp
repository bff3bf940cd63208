// SPDX-License-Identifier: Apache-2.0
// The script and its proofs.
#include "fault/scenario.hpp"

#include <bursar/core/log.hpp>

namespace bursar::test {

using namespace bursar::literals;

namespace {

constexpr Bytes kCapacity = 256_MiB;
constexpr Bytes kLimit = 24_MiB;

SimOptions sim_options(CapabilityLevel level) {
  SimOptions options;
  options.capacity = kCapacity;
  options.capability = level;
  options.detector = true;
  return options;
}

AllocatorOptions allocator_options() {
  AllocatorOptions options;
  options.max_extent = 8_MiB;
  options.extent_share = 8;
  options.small_limit = 1_MiB;
  options.fence_bytes = 2_MiB;
  options.stitch_limit = Bytes::max();  // views have a scenario of their own
  options.fence_batch = 4;
  options.wait_limit = milliseconds(40);
  return options;
}

}  // namespace

Scenario::Scenario(CapabilityLevel level, const Fault& fault)
    : level_(level),
      fault_(fault),
      driver_(std::make_shared<ScenarioDriver>(sim_options(level), fault.undo)),
      allocator_(std::make_unique<CachingAllocator>(driver_, allocator_options())),
      a_(driver_->create_stream()),
      b_(driver_->create_stream()),
      c_(driver_->create_stream()),
      streams_{a_, b_},
      limited_(*allocator_->create_domain({.name = "limited", .limit = kLimit})),
      other_(*allocator_->create_domain({.name = "other"})) {}

Outcome Scenario::run() {
  driver_->fail(fault_.call, fault_.nth, fault_.forever, fault_.code);
  grow();
  free_and_move();
  change_streams();
  use_flags();
  trim_and_regrow();
  retire();
  reach_the_limit();
  fill_the_device();
  capture();
  const std::uint64_t moved = allocator_->stats().extents_moved;
  finish();
  end();
  return {driver_->faults_hit(), complaint_, moved, refused_};
}

// -- the script --------------------------------------------------------------------------------

void Scenario::grow() {
  for (std::size_t i = 0; i < 8; ++i) get(i, 2_MiB, a_);
  for (std::size_t i = 8; i < 12; ++i) get(i, 300_KiB, i % 2 == 0 ? a_ : b_);
  get(12, 7_MiB + 512_B, b_, other_);
  get(13, 20_MiB, a_, other_);
  get(14, 5_MiB, c_);
}

void Scenario::free_and_move() {
  record(0, b_);
  work(a_, 6);
  work(b_, 4);
  for (std::size_t i = 0; i < 8; i += 2) free(i);
  get(15, 6_MiB, a_);  // by alias where the device can
  free(15);
  free(1);
  get(16, 9_MiB, a_);
  get(17, 3_MiB, b_);
}

void Scenario::change_streams() {
  work(b_, 3);
  driver_->synchronize_device();  // a_ takes memory over that b_ has used
  free_on(12, a_);
  free_on(17, a_);
  get(18, 4_MiB, a_, other_);
  driver_->sleep_for(milliseconds(20));
  trim(Bytes::max());
  get(19, 10_MiB, b_);  // idle extents whose work is done, also other domains'
  get(20, 2_MiB, a_, limited_);
  for (std::size_t i = 8; i < 12; ++i) free(i);
}

void Scenario::use_flags() {
  get(21, 3_MiB, a_, kDefaultDomain, BlockFlags::pinned);
  if (level_ != CapabilityLevel::no_vmm) {
    get(22, 3_MiB, a_, kDefaultDomain, BlockFlags::shareable);
  }
  record(21, b_);
  work(b_, 2);
  free(21);
  free(22);
  get(23, 1000_B, a_);
  get(24, 1000_B, b_);
  driver_->sleep_for(milliseconds(10));
  get(25, 1000_B, a_);
  trim(Bytes::max());
}

void Scenario::trim_and_regrow() {
  free(13);
  free(16);
  work(a_, 2);
  trim(30_MiB);
  driver_->sleep_for(milliseconds(5));
  trim(20_MiB);
  get(26, 12_MiB, a_, other_);
  get(27, 11_MiB, b_);
}

void Scenario::retire() {
  work(c_, 2);
  free(14);
  const result<void> retired = allocator_->retire_stream(c_);
  prove("retire_stream", retired);
  retired.ok() ? driver_->destroy_stream(c_) : streams_.push_back(c_);
  driver_->sleep_for(milliseconds(3));
  trim(Bytes::max());
}

void Scenario::reach_the_limit() {
  get(28, 14_MiB, a_, limited_);
  free(28);
  for (std::size_t i = 29; i < 33; ++i) get(i, 3_MiB, a_, limited_);
  free(30);
  free(32);
  get(33, 10_MiB, a_, limited_);
  get(34, 30_MiB, b_, limited_);
  trim(40_MiB);
}

void Scenario::fill_the_device() {
  get(35, 90_MiB, a_);
  get(36, 90_MiB, b_, other_);
  work(b_, 20);
  free(36);
  get(37, 1000_B, b_);
  get(38, 100_MiB, a_);  // waits for b_
  get(39, 200_MiB, a_);  // in vain
  free(35);
  trim(100_MiB);
}

void Scenario::capture() {
  driver_->synchronize_device();
  const result<StreamRef> resolved = allocator_->stream(a_);  // as is needed before a capture
  const StreamRef a = resolved ? *resolved : StreamRef{a_};
  driver_->begin_capture(a_);
  capturing_ = true;
  get(40, 1000_B, a);
  get(41, 60_MiB, a);
  free(23);
  free_on(24, a);
  record(27, a);
  if (!driver_->end_capture(a_)) complain("a capture was spoiled");
  capturing_ = false;
  get(42, 2_MiB, a_);
}

/// Once the faults are gone and the work is done, everything can be given back.
void Scenario::finish() {
  if (fault_.in_teardown) return;
  driver_->clear_faults();
  for (std::size_t i = 0; i < kBlocks; ++i) free(i);
  trim(0_B);  // the fences
  driver_->synchronize_device();
  trim(0_B);
  trim(0_B);
  const AllocatorStats s = allocator_->stats();
  if (s.reserved != 0_B || s.quarantine != 0_B) complain("not everything could be released");
}

void Scenario::end() {
  driver_->synchronize_device();
  const std::uint64_t before = driver_->faults_hit();
  bool logged = false;
  set_log_sink([&](LogLevel, std::string_view) { logged = true; });
  allocator_.reset();
  set_log_sink({});
  if (driver_->faults_hit() != before) {  // what failed here can only be logged
    if (!logged && fault_.call != DriverCall::event_destroy) complain("a leak was not logged");
    return;
  }
  const bool left = driver_->extent_bytes() != 0_B || driver_->mapping_count() != 0 ||
                    driver_->reserved_addresses() != 0_B || driver_->event_count() != 0;
  if (left) complain("the allocator left something behind");
}

// -- steps -------------------------------------------------------------------------------------

void Scenario::get(std::size_t block, Bytes size, StreamRef stream, DomainId domain,
                   BlockFlags flags) {
  AllocateOptions options;
  options.stream = stream;
  options.domain = domain;
  options.flags = flags;
  const result<void*> got = allocator_->try_allocate(size.count, options);
  prove("allocate", got, domain);
  if (!got) {
    ++refused_;
    return;
  }
  if (blocks_[block] != nullptr) complain("the script uses a block twice");
  blocks_[block] = *got;
  if (!allocator_->owns(*got)) complain("a block is not owned");
  const SimAccess access{to_address(*got), size, static_cast<std::uint64_t>(block) + 1};
  driver_->launch(stream.handle, microseconds(50), {&access, 1});
}

void Scenario::free(std::size_t block) {
  if (blocks_[block] == nullptr) return;
  prove("deallocate", allocator_->try_deallocate(blocks_[block]));
  blocks_[block] = nullptr;
}

void Scenario::free_on(std::size_t block, StreamRef stream) {
  if (blocks_[block] == nullptr) return;
  const result<void> freed = allocator_->try_deallocate(blocks_[block], stream);
  prove("deallocate on a stream", freed);
  if (freed) blocks_[block] = nullptr;
}

void Scenario::record(std::size_t block, StreamRef stream) {
  if (blocks_[block] == nullptr) return;
  prove("record_stream", allocator_->record_stream(blocks_[block], stream));
}

void Scenario::trim(Bytes target) {
  const Bytes before = driver_->extent_bytes();
  const Bytes given = allocator_->trim(target, {}, streams_);
  prove("trim");
  if (before - driver_->extent_bytes() < given) complain("trim said more than it gave");
}

// -- proofs ------------------------------------------------------------------------------------

template <class T>
void Scenario::prove(const char* step, const result<T>& outcome, DomainId domain) {
  if (!outcome.ok() && !truthful(outcome.failure(), domain)) {
    complain(std::string(step) + " failed with " + to_string(outcome.failure()));
  }
  prove(step);
}

void Scenario::prove(const char* step) {
  if (const result<void> valid = allocator_->validate(); !valid) {
    complain(std::string(step) + ": " + valid.failure().message);
  }
  const AllocatorStats s = allocator_->stats();
  const Bytes parts = s.live + s.idle + s.pending + s.spare + s.slack + s.quarantine;
  if (s.requested > s.live || s.live > s.reserved || s.reserved != parts) {
    complain(std::string(step) + ": the parts do not add up");
  }
  if (s.reserved != driver_->extent_bytes()) {
    complain(std::string(step) + ": the driver holds memory that nobody counts");
  }
  if (allocator_->domain_stats(limited_).reserved > kLimit) {
    complain(std::string(step) + ": a limit was passed");
  }
  for (const Violation& violation : driver_->violations()) complain(violation.text);
}

/// True when an error says what happened and nothing else.
bool Scenario::truthful(const error& e, DomainId domain) const {
  // What happens without faults: a full device, a limit, a capture.
  const Bytes free = kCapacity - driver_->extent_bytes();
  if (e.kind == ErrorKind::device_oom && free < e.asked) return true;
  const Bytes held = allocator_->domain_stats(domain).reserved;
  if (e.kind == ErrorKind::over_budget && domain == limited_) return held + e.asked > kLimit;
  if (e.kind == ErrorKind::not_supported && capturing_) return true;

  if (driver_->faults_hit() == 0) return false;
  const bool unknown =
      fault_.code == DriverCode::unknown || fault_.undo != ScenarioDriver::Undo::works;
  const bool full = fault_.code == DriverCode::out_of_memory;
  switch (e.kind) {
    case ErrorKind::driver_fault: return unknown;
    case ErrorKind::va_exhausted: return fault_.call == DriverCall::reserve && (unknown || full);
    case ErrorKind::device_oom: return full;
    case ErrorKind::device_lost: return fault_.code == DriverCode::illegal_address;
    default: return false;
  }
}

void Scenario::complain(const std::string& what) {
  if (complaint_.empty()) complaint_ = what;
}

}  // namespace bursar::test
