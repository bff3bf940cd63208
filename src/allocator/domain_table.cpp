// SPDX-License-Identifier: Apache-2.0
// Domains, limits, charges.
#include <bursar/allocator/domain_table.hpp>

#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

DomainTable::DomainTable(int devices) : devices_(static_cast<std::size_t>(devices)) {
  (void)create("default", Bytes::max());
}

result<DomainId> DomainTable::create(std::string name, Bytes limit) {
  const std::scoped_lock lock(making_);
  const std::uint32_t id = count_.load();
  if (id >= kChunk * kChunk) {
    return error{.kind = ErrorKind::invalid_argument,
                 .message = "too many domains: at most 65,536 can be made in an allocator's life"};
  }
  auto& chunk = chunks_[id / kChunk];
  if (!chunk) chunk = std::make_unique<std::array<Row, kChunk>>();
  Row& row = (*chunk)[id % kChunk];
  row.name = std::move(name);
  row.limit = limit.count;
  row.charged = std::make_unique<std::atomic<std::uint64_t>[]>(devices_);
  count_.store(id + 1);  // publishes the row
  return DomainId{id};
}

bool DomainTable::open(DomainId domain) const noexcept {
  return known(domain) && row(domain).open.load();
}

void DomainTable::close(DomainId domain) noexcept { row(domain).open.store(false); }

void DomainTable::set_limit(DomainId domain, Bytes limit) noexcept {
  row(domain).limit.store(limit.count);
}

Bytes DomainTable::limit(DomainId domain) const noexcept { return Bytes{row(domain).limit.load()}; }

Bytes DomainTable::charged(DomainId domain, DeviceId device) const noexcept {
  return Bytes{row(domain).charged[static_cast<std::size_t>(device.value)].load()};
}

std::string DomainTable::name(DomainId domain) const { return row(domain).name; }

result<void> DomainTable::charge(DomainId domain, DeviceId device, Bytes bytes) noexcept {
  Row& r = row(domain);
  std::atomic<std::uint64_t>& charged = r.charged[static_cast<std::size_t>(device.value)];
  std::uint64_t now = charged.load();
  for (;;) {
    const std::uint64_t limit = r.limit.load();
    const std::uint64_t left = limit > now ? limit - now : 0;
    if (bytes.count > left) {
      return error{.kind = ErrorKind::over_budget,
                   .message =
                       "the domain's limit does not allow it: free memory, ask for less or "
                       "raise the limit",
                   .device = device,
                   .asked = bytes,
                   .free = Bytes{left},
                   .limit = Bytes{limit}};
    }
    if (charged.compare_exchange_weak(now, now + bytes.count)) return {};
  }
}

void DomainTable::refund(DomainId domain, DeviceId device, Bytes bytes) noexcept {
  const std::uint64_t before =
      row(domain).charged[static_cast<std::size_t>(device.value)].fetch_sub(bytes.count);
  BURSAR_CHECK(1, before >= bytes.count);
}

}  // namespace v0
}  // namespace bursar
