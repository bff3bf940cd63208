// SPDX-License-Identifier: Apache-2.0
// SimDriver's driver calls: each one priced, refused where the hardware refuses it, and done.
#include <algorithm>

#include "sim_impl.hpp"

namespace bursar {
inline namespace v0 {

// -- devices ------------------------------------------------------------------------------------

int SimDriver::device_count() const noexcept { return impl_->options.devices; }

const DeviceInfo& SimDriver::device_info(DeviceId device) const noexcept {
  return impl_->devices[static_cast<std::size_t>(device.value)];
}

DriverCode SimDriver::memory_info(DeviceId device, MemoryInfo& out) noexcept {
  return impl_->call_unlocked(DriverCall::memory_info, [&] {
    if (!impl_->valid(device)) return DriverCode::invalid_device;
    out = MemoryInfo{impl_->capacity->free(device), impl_->options.capacity};
    return DriverCode::success;
  });
}

DriverCode SimDriver::trim_pools(DeviceId device) noexcept {
  return impl_->call_unlocked(DriverCall::trim_pools, [&] {
    return impl_->valid(device) ? DriverCode::success : DriverCode::invalid_device;
  });
}

// -- extents ------------------------------------------------------------------------------------

DriverCode SimDriver::create(DeviceId device, Bytes size, ExtentProperties properties,
                             ExtentHandle& out) noexcept {
  const Duration price = impl_->prices.sized(&SimPriceRow::create, size);
  return impl_->vmm_call(DriverCall::create, price, [&](Duration& cost) {
    const DriverCode code = impl_->memory.create(device, size, properties, out);
    if (code == DriverCode::out_of_memory) cost = impl_->prices.refused_create();
    return code;
  });
}

DriverCode SimDriver::release(ExtentHandle extent) noexcept {
  const auto price = [&] {
    return impl_->prices.sized(&SimPriceRow::release, impl_->memory.extent_size(extent));
  };
  return impl_->vmm_call(DriverCall::release, price, [&] { return impl_->memory.release(extent); });
}

DriverCode SimDriver::export_handle(ExtentHandle extent, int& fd_out) noexcept {
  const Duration price = impl_->prices.flat(DriverCall::export_handle);
  return impl_->vmm_call(DriverCall::export_handle, price,
                         [&] { return impl_->memory.export_handle(extent, fd_out); });
}

DriverCode SimDriver::import_handle(DeviceId device, int fd, Bytes size,
                                    ExtentHandle& out) noexcept {
  const Duration price = impl_->prices.flat(DriverCall::import_handle);
  return impl_->vmm_call(DriverCall::import_handle, price,
                         [&] { return impl_->memory.import_handle(device, fd, size, out); });
}

// -- addresses ----------------------------------------------------------------------------------

DriverCode SimDriver::reserve(Bytes size, DeviceAddress hint, VaRange& out) noexcept {
  const Duration price = impl_->prices.flat(DriverCall::reserve);
  return impl_->vmm_call(DriverCall::reserve, price,
                         [&] { return impl_->memory.reserve(size, hint, out); });
}

DriverCode SimDriver::unreserve(VaRange range) noexcept {
  const Duration price = impl_->prices.flat(DriverCall::unreserve);
  return impl_->vmm_call(DriverCall::unreserve, price,
                         [&] { return impl_->memory.unreserve(range); });
}

DriverCode SimDriver::map(VaRange range, ExtentHandle extent) noexcept {
  const Duration price = impl_->prices.sized(&SimPriceRow::map, range.size);
  return impl_->vmm_call(DriverCall::map, price, [&] { return impl_->memory.map(range, extent); });
}

DriverCode SimDriver::set_access(VaRange range, std::span<const DeviceId> devices) noexcept {
  // One call over many mappings saves nothing: it costs what as many single calls would.
  const auto price = [&] {
    Duration sum{};
    impl_->memory.each_mapping(
        range, [&](Bytes size) { sum += impl_->prices.sized(&SimPriceRow::set_access, size); });
    return std::max(sum, impl_->prices.sized(&SimPriceRow::set_access, {}));
  };
  return impl_->vmm_call(DriverCall::set_access, price,
                         [&] { return impl_->memory.set_access(range, devices); });
}

DriverCode SimDriver::unmap(VaRange range) noexcept {
  const Duration price = impl_->prices.sized(&SimPriceRow::unmap, range.size);
  return impl_->vmm_call(DriverCall::unmap, price, [&] { return impl_->memory.unmap(range); });
}

// -- memory without VMM -------------------------------------------------------------------------

DriverCode SimDriver::malloc_plain(DeviceId device, Bytes size, DeviceAddress& out) noexcept {
  const Duration price = impl_->prices.sized(&SimPriceRow::malloc_plain, size);
  return impl_->call(DriverCall::create, price, [&](Duration& cost) {
    if (impl_->spoil_captures("malloc_plain")) return DriverCode::capture_unsupported;
    const DriverCode code = impl_->memory.malloc_plain(device, size, out);
    if (code == DriverCode::out_of_memory) cost = impl_->prices.refused_malloc_plain();
    return code;
  });
}

DriverCode SimDriver::free_plain(DeviceAddress address) noexcept {
  const auto price = [&] {
    const auto plain = impl_->memory.plain(address);
    return impl_->prices.sized(&SimPriceRow::free_plain, plain ? plain->size : Bytes{});
  };
  return impl_->call(DriverCall::release, price, [&](Duration& cost) {
    if (impl_->spoil_captures("free_plain")) return DriverCode::capture_unsupported;
    const auto plain = impl_->memory.plain(address);
    if (!plain) return DriverCode::invalid_value;
    // cudaFree was seen to wait for the device: the call takes that long, and the host knows more.
    cost += std::max(Duration{}, impl_->streams.device_end(plain->device) - impl_->now());
    if (impl_->detector != nullptr) impl_->detector->host_sees_device(plain->device);
    return impl_->memory.free_plain(address);
  });
}

// -- streams and events -------------------------------------------------------------------------

DriverCode SimDriver::stream_id(DeviceId device, StreamHandle handle, StreamId& out) noexcept {
  bool capturing = false;
  const DriverCode code =
      impl_->with_stream(DriverCall::stream_id, device, handle, [&](SimStream& stream) {
        capturing = stream.capturing.load(std::memory_order_acquire);
        if (!capturing) out = StreamId{stream.id.load(std::memory_order_acquire)};
      });
  return capturing ? DriverCode::capture_unsupported : code;
}

DriverCode SimDriver::stream_capturing(DeviceId device, StreamHandle handle, bool& out) noexcept {
  return impl_->with_stream(DriverCall::stream_capturing, device, handle, [&](SimStream& stream) {
    out = stream.capturing.load(std::memory_order_acquire);
  });
}

DriverCode SimDriver::event_create(DeviceId device, EventHandle& out) noexcept {
  return impl_->call(DriverCall::event_create, [&] {
    if (!impl_->valid(device)) return DriverCode::invalid_device;
    out = impl_->streams.create_event(device);
    return DriverCode::success;
  });
}

DriverCode SimDriver::event_destroy(EventHandle event) noexcept {
  return impl_->call(DriverCall::event_destroy, [&] {
    return impl_->streams.destroy_event(event) ? DriverCode::success : DriverCode::invalid_handle;
  });
}

DriverCode SimDriver::event_record(DeviceId device, EventHandle handle,
                                   StreamHandle stream_handle) noexcept {
  return impl_->call(DriverCall::event_record, [&] {
    if (!impl_->valid(device)) return DriverCode::invalid_device;
    SimStream* stream = impl_->find_stream(device, stream_handle, "event_record");
    SimEvent* event = impl_->streams.find_event(handle);
    if (stream == nullptr || event == nullptr || event->device != stream->device) {
      return DriverCode::invalid_handle;
    }
    if (stream->capturing.load()) return impl_->spoil(*stream, "event_record");
    event->recorded = true;
    event->done = stream->end;
    if (impl_->detector != nullptr) event->clock = impl_->detector->snapshot(stream->agent);
    return DriverCode::success;
  });
}

DriverCode SimDriver::event_query(EventHandle handle) noexcept {
  return impl_->call(DriverCall::event_query, [&] {
    const SimEvent* event = impl_->streams.find_event(handle);
    if (event == nullptr) return DriverCode::invalid_handle;
    if (!event->recorded) return DriverCode::success;
    if (event->done > impl_->now()) return DriverCode::not_ready;
    if (impl_->detector != nullptr) impl_->detector->host_sees(event->clock);
    return DriverCode::success;
  });
}

DriverCode SimDriver::stream_wait(DeviceId device, StreamHandle stream_handle,
                                  EventHandle handle) noexcept {
  return impl_->call(DriverCall::stream_wait, [&] {
    if (!impl_->valid(device)) return DriverCode::invalid_device;
    SimStream* stream = impl_->find_stream(device, stream_handle, "stream_wait");
    const SimEvent* event = impl_->streams.find_event(handle);
    if (stream == nullptr || event == nullptr) return DriverCode::invalid_handle;
    if (!event->recorded) return DriverCode::success;
    if (stream->capturing.load()) return impl_->spoil(*stream, "stream_wait");
    impl_->streams.extend(*stream, event->done);
    if (impl_->detector != nullptr) impl_->detector->wait(stream->agent, event->clock);
    return DriverCode::success;
  });
}

DriverCode SimDriver::memset(DeviceId device, DeviceAddress address, std::uint8_t value, Bytes size,
                             StreamHandle handle) noexcept {
  return impl_->call(DriverCall::memset, [&] {
    if (!impl_->valid(device)) return DriverCode::invalid_device;
    SimStream* stream = impl_->find_stream(device, handle, "memset");
    if (stream == nullptr) return DriverCode::invalid_handle;
    if (stream->capturing.load()) return DriverCode::success;
    const VaRange range{address, size};
    if (impl_->detector != nullptr) {
      impl_->detector->begin_work(stream->agent);
      impl_->memory.access(stream->device, range, impl_->detector->anonymous_generation());
    }
    if (!impl_->memory.accessible(stream->device, range)) return DriverCode::invalid_value;
    impl_->streams.extend(*stream, std::max(impl_->now(), stream->end));
    impl_->memory.fill(range, value);
    return DriverCode::success;
  });
}

DriverCode SimDriver::read(DeviceId device, DeviceAddress address,
                           std::span<std::byte> out) noexcept {
  return impl_->call(DriverCall::read, [&] {
    if (!impl_->valid(device)) return DriverCode::invalid_device;
    SimStream& reader = impl_->streams.reader(device);
    const VaRange range{address, Bytes{out.size()}};
    if (impl_->detector != nullptr) {
      impl_->detector->begin_work(reader.agent);
      impl_->memory.access(device, range, impl_->detector->anonymous_generation());
      impl_->detector->host_sees_stream(reader.agent);
    }
    if (!impl_->memory.accessible(device, range)) return DriverCode::invalid_value;
    return impl_->memory.read(address, out) ? DriverCode::success : DriverCode::not_supported;
  });
}

// -- clock and figures --------------------------------------------------------------------------

Duration SimDriver::now() const noexcept { return impl_->now(); }

void SimDriver::sleep_for(Duration duration) noexcept {
  impl_->advance_to(impl_->now() + duration);
}

CallMeter& SimDriver::meter() noexcept { return impl_->meter; }

}  // namespace v0
}  // namespace bursar
