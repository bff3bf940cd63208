// SPDX-License-Identifier: Apache-2.0
// dlopen with RTLD_LOCAL: the library's own malloc is seen by nobody.
#include "tcmalloc_rig.hpp"

#include <initializer_list>

#include <dlfcn.h>

namespace bursar {
inline namespace v0 {
namespace {

TcmallocFunctions load_tcmalloc() {
  for (const char* name : {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    using Allocate = void* (*)(std::size_t);
    using Deallocate = void (*)(void*);
    const TcmallocFunctions found{reinterpret_cast<Allocate>(dlsym(library, "tc_malloc")),
                                  reinterpret_cast<Deallocate>(dlsym(library, "tc_free"))};
    if (found.allocate != nullptr && found.deallocate != nullptr) return found;
  }
  return {};
}

}  // namespace

const TcmallocFunctions* find_tcmalloc() noexcept {
  static const TcmallocFunctions functions = load_tcmalloc();
  return functions.allocate != nullptr ? &functions : nullptr;
}

}  // namespace v0
}  // namespace bursar
