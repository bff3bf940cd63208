// SPDX-License-Identifier: Apache-2.0
// The logging hook: where the library says what it cannot return.
//
// A destructor that fails, a device that lacks a capability, an undo that went wrong: each is one
// line handed to a sink. No sink is installed by default below `warning`; those go to stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <bursar/core/config.hpp>

namespace bursar {
inline namespace v0 {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Installs `sink` for the whole process; an empty one restores the default (warnings and errors
/// to stderr). Thread-safe. The sink may be called from any thread, never under a lock of the
/// library, and must not throw.
BURSAR_EXPORT void set_log_sink(LogSink sink);

/// Hands one line to the sink. Never throws. Must not be called under a lock of the library.
BURSAR_EXPORT void log(LogLevel level, std::string_view message) noexcept;

}  // namespace v0
}  // namespace bursar
