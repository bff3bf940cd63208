// SPDX-License-Identifier: Apache-2.0
// The report as one page for a browser: rows, bytes over time, the address map at the peak.
#pragma once

#include <span>
#include <string>

#include "picture.hpp"
#include "replay_row.hpp"

namespace bursar {
inline namespace v0 {

/// A whole HTML document that needs no other file and no network. Its size is bounded by the number
/// of pictures and of curves in them: at most some 10 KB a curve and 700 KB a map. Names are data
/// in it, never markup.
std::string to_html(std::span<const ReplayRow> rows, std::span<const ReplayPicture> pictures);

}  // namespace v0
}  // namespace bursar
