// SPDX-License-Identifier: Apache-2.0
// on_rig: from an allocator's name to its rig, so that each loop is compiled for the very type it
// calls and pays for no dispatch of the benchmark's.
//
// A rig has subject(stream), which has allocate(bytes) and deallocate(block), both throwing Error;
// and meter(), where its driver calls are counted, null where nobody counts them.
#pragma once

#include <string_view>
#include <utility>

#include "bursar_rig.hpp"
#include "peer_rig.hpp"
#include "tcmalloc_rig.hpp"

namespace bursar {
inline namespace v0 {

/// Calls `use` with the rig of `allocator`, one of machine.allocators(), made for this call.
template <class Use>
void on_rig(BenchMachine& machine, std::string_view allocator, int streams, Use&& use) {
  if (allocator == "bursar") {
    BursarRig rig(machine, streams);
    use(rig);
  } else if (allocator == "tcmalloc") {
    TcmallocRig rig;
    use(rig);
  } else {
    PeerRig rig(machine, allocator, streams);
    use(rig);
  }
}

}  // namespace v0
}  // namespace bursar
