// SPDX-License-Identifier: Apache-2.0
// What the command's exit code says to a script.
#pragma once

namespace bursar {
inline namespace v0 {

enum class ExitCode : int {
  done = 0,         ///< the report is complete; a row may say that memory ran out
  failed = 1,       ///< the library, the driver or the machine failed
  bad_request = 2,  ///< the command line, BURSAR_CONF or an input file cannot be used
};

}  // namespace v0
}  // namespace bursar
