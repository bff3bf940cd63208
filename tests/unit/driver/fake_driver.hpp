// SPDX-License-Identifier: Apache-2.0
// Puts the pretended libcuda.so.1 in the place of the real one, for this process.
//
// The loader knows a library by its soname: once the fake is loaded by its path, libcuda.so.1 is
// the fake, also on a machine that has the real one.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fake_libcuda.hpp"

namespace bursar::test {

inline FakeCuda& fake() {
  static FakeCuda* const state = [] {
    void* library = dlopen(FAKE_LIBCUDA_PATH, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<decltype(&fake_cuda)>(dlsym(library, "fake_cuda"))();
  }();
  return *state;
}

/// The fake as if just loaded. No driver opened before may be used, or destroyed, afterwards.
inline FakeCuda& fresh_fake() { return fake() = FakeCuda{}; }

inline bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline std::string own_path() {
  std::array<char, 4096> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace bursar::test
