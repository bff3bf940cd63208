// SPDX-License-Identifier: Apache-2.0
// Every macro of the library, in one place, with its meaning, default and effect on the ABI.
//
// Behavior is never chosen by a macro: options structs do that. What is here is what only the
// preprocessor can say: how symbols leave the shared object and how much checking is compiled in.
#pragma once

// BURSAR_CHECK_LEVEL: how much the library proves about itself while it runs.
//   0 nothing, 1 cheap assertions (default), 2 validate() after each public call, 3 full walks.
//   Set by CMake (-DBURSAR_CHECK_LEVEL=n). No effect on the ABI: no type changes its layout.
#ifndef BURSAR_CHECK_LEVEL
#define BURSAR_CHECK_LEVEL 1
#endif

// BURSAR_EXPORT: a symbol that a shared build must keep visible. No effect on a static build.
#ifndef BURSAR_EXPORT
#if defined(__GNUC__)
#define BURSAR_EXPORT __attribute__((visibility("default")))
#else
#define BURSAR_EXPORT
#endif
#endif

namespace bursar {
inline namespace v0 {

inline constexpr int kVersionMajor = 0;
inline constexpr int kVersionMinor = 1;
inline constexpr int kVersionPatch = 0;

}  // namespace v0
}  // namespace bursar
