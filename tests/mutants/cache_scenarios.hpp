// SPDX-License-Identifier: Apache-2.0
// Programs that live from thread caches: the sizes of random programs seldom come twice.
#pragma once

#include <string>

namespace bursar::test {

/// Runs them on the library. Returns "who: what" for the first objection, or nothing.
std::string examine_thread_caches();

}  // namespace bursar::test
