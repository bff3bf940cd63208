// SPDX-License-Identifier: Apache-2.0
// keep: the compiler must believe that somebody uses a block, or it may drop the pair around it.
//
// Not Google Benchmark's DoNotOptimize: up to 1.7 it can hand back another value than it was given
// (g++ 12 with sanitizers), and then the block is never freed.
#pragma once

namespace bursar {
inline namespace v0 {

inline void keep(void* block) { asm volatile("" : : "r"(block) : "memory"); }

}  // namespace v0
}  // namespace bursar
