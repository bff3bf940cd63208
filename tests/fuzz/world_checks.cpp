// SPDX-License-Identifier: Apache-2.0
// What must hold after each step, and after all.
#include "fuzz/world.hpp"

namespace bursar::test {

void World::object(Finding::By by, std::string text) { throw Finding{by, std::move(text)}; }

void World::expect(bool truth, const char* text) {
  if (!truth) object(Finding::By::harness, text);
}

/// An allocation may be refused for lack of memory, of budget where there is a limit, or while its
/// stream is captured. Where a fault strikes, any error will do.
void World::expect_reason(const error& failure, const Domain& domain, bool capturing) const {
  if (faulty_ || failure.kind == ErrorKind::device_oom) return;
  if (failure.kind == ErrorKind::over_budget && domain.limit != Bytes::max()) return;
  if (failure.kind == ErrorKind::not_supported && capturing) return;
  object(Finding::By::harness, "an allocation was refused: " + bursar::to_string(failure));
}

void World::run(const Operation& operation) {
  if (interleave_ && operation.step != Step::interleave) {
    interleave_ = false;
    driver_->on_next_event_call([this, operation] { step_inside(operation); });
    return;
  }
  step(operation);
  check();
}

void World::check() const {
  if (found_inside_) throw *found_inside_;
  check_detector();
  check_books();
  if (const result<void> good = allocator_->validate(); !good) {
    object(Finding::By::validate, good.failure().message);
  }
}

void World::check_detector() const {
  const std::vector<Violation> violations = driver_->violations();
  if (!violations.empty()) object(Finding::By::detector, violations.front().text);
}

/// The allocator's figures are those of the books kept here and of the device.
void World::check_books() const {
  const AllocatorStats s = allocator_->stats();
  Bytes asked{};
  Bytes usable{};
  for (const auto& [address, block] : live_) {
    asked += block.asked;
    usable += block.usable;
  }
  expect(s.requested == asked, "requested is not what was asked for");
  const bool watched = setup_.watch == Watch::passthrough || setup_.watch == Watch::redzones;
  expect(watched ? s.live >= usable : s.live == usable, "live is not what is usable");
  expect(s.live_blocks == live_.size(), "live blocks are not those handed out");
  expect(s.live + s.idle + s.pending + s.spare + s.slack + s.quarantine == s.reserved,
         "the parts are not the whole");
  expect(s.reserved == driver_->extent_bytes(), "reserved is not what the device has given");
  expect(s.reserved <= s.reserved_peak, "more is reserved than ever was");
  check_domains();
}

void World::check_domains() const {
  std::map<DomainId, Bytes> asked;
  for (const auto& [address, block] : live_) asked[block.domain] += block.asked;
  Bytes reserved{};
  for (std::uint32_t i = 0; i <= domains_made_; ++i) {
    const AllocatorStats s = allocator_->domain_stats(DomainId{i});
    expect(s.requested == asked[DomainId{i}], "a domain's requested bytes are not its own");
    expect(s.live <= s.reserved, "a domain's blocks lie in memory that another pays");
    reserved += s.reserved;
  }
  expect(reserved == allocator_->stats().reserved, "the domains do not hold what is reserved");
}

void World::finish() {
  driver_->on_next_event_call(nullptr);
  driver_->clear_faults();
  faulty_ = false;
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (streams_[i].capturing) toggle_capture(i);
  }
  while (const std::optional<Live> block = take(0)) give_back(*block);
  check();
  reclaim_everything();
  for (const EventHandle event : events_) (void)driver_->event_destroy(event);
  allocator_.reset();
  check_leaks();
}

/// Once all work is seen done and every stream was named, everything can be given back, and all of
/// the device be had again.
void World::reclaim_everything() {
  std::vector<StreamRef> named;
  for (std::size_t i = 0; i < kStreams; ++i) {
    driver_->synchronize(streams_[i].handle);
    named.push_back(name(i, false));
  }
  driver_->synchronize_device();
  for (int pass = 0; pass < 2; ++pass) allocator_->trim(Bytes{0}, {}, named);
  check();
  expect(allocator_->stats().reserved == Bytes{}, "idle memory could not all be given back");
  set_limit(0, Bytes::max());
  AllocateOptions options;
  options.stream = name(0, false);
  const Bytes zones = setup_.watch == Watch::redzones ? page_ : Bytes{};
  const Bytes all = page_ * setup_.capacity_pages - zones;
  const result<void*> block = allocator_->try_allocate(all.count, options);
  expect(block.ok(), "the whole device cannot be had again");
  give_back(enter(*block, all, options, 0));
  driver_->synchronize_device();  // what scrub and redzones put on the stream is work too
  live_.clear();
}

void World::check_leaks() const {
  expect(driver_->mapping_count() == 0, "a mapping was left");
  expect(driver_->extent_bytes() == Bytes{}, "an extent was left");
  expect(driver_->reserved_addresses() == Bytes{}, "addresses were left");
  expect(driver_->event_count() == 0, "an event was left");
  check_detector();
}

std::optional<Finding> run_program(std::span<const std::uint8_t> bytes) {
  const Program program = decode(bytes);
  std::size_t at = 0;
  try {
    World world(program.setup);
    for (const Operation& operation : program.operations) {
      ++at;
      world.run(operation);
    }
    at = 0;
    world.finish();
  } catch (const Finding& finding) {
    const std::string where = at == 0 ? "at the end: " : "step " + std::to_string(at) + ": ";
    return Finding{finding.by, where + finding.text};
  }
  return std::nullopt;
}

}  // namespace bursar::test
