// SPDX-License-Identifier: Apache-2.0
// The targets `torch` and `torch_expandable`, where the module that reaches PyTorch can be loaded.
#pragma once

#include <memory>

#include "replay_target.hpp"
#include "torch_peer.hpp"

namespace bursar {
inline namespace v0 {

/// The functions of libbursar_torch_peer.so beside the program; null where it is not, or where
/// PyTorch's libraries cannot be loaded (the log says why). Loaded once and kept.
const TorchPeer* find_torch_peer();

/// PyTorch's caching allocator on device 0. One at a time. Its reserved bytes are those of its own
/// statistics, its creates and releases what they count; time in the driver is not known. A block
/// goes back to the stream it was allocated on, whichever frees it. Throws Error.
std::unique_ptr<ReplayTarget> make_torch_target(const TorchPeer& peer, bool expandable);

}  // namespace v0
}  // namespace bursar
