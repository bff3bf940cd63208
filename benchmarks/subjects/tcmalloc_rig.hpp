// SPDX-License-Identifier: Apache-2.0
// TcmallocRig: a good allocator of host memory, as the yardstick that moves with the machine.
//
// It is loaded and called by name: the program itself, Bursar included, keeps the malloc it has.
#pragma once

#include <cstddef>

#include <bursar/driver/call_meter.hpp>

namespace bursar {
inline namespace v0 {

struct TcmallocFunctions {
  void* (*allocate)(std::size_t bytes);
  void (*deallocate)(void* block);
};

/// Null where no libtcmalloc can be loaded. Loaded once and kept. Thread-safe.
const TcmallocFunctions* find_tcmalloc() noexcept;

/// Precondition: find_tcmalloc() is not null.
class TcmallocRig {
 public:
  class Subject {
   public:
    explicit Subject(TcmallocFunctions functions) : functions_(functions) {}
    void* allocate(std::size_t bytes) { return functions_.allocate(bytes); }
    void deallocate(void* block) { functions_.deallocate(block); }

   private:
    TcmallocFunctions functions_;
  };

  Subject subject(int /*stream*/) const { return Subject(*find_tcmalloc()); }
  CallMeter* meter() const { return nullptr; }
};

}  // namespace v0
}  // namespace bursar
