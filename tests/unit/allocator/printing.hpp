// SPDX-License-Identifier: Apache-2.0
// How failed assertions print the library's types. Included by every test of this program, so that
// all of them print alike.
#pragma once

#include <string>

#include <bursar/core/error.hpp>

#include "support/catch.hpp"

template <>
struct Catch::StringMaker<bursar::Bytes> {
  static std::string convert(bursar::Bytes bytes) { return std::to_string(bytes.count) + " B"; }
};
template <>
struct Catch::StringMaker<bursar::ErrorKind> {
  static std::string convert(bursar::ErrorKind kind) { return bursar::to_string(kind); }
};
