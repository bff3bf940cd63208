// SPDX-License-Identifier: Apache-2.0
// A command of the `bursar` program, one file each.
#pragma once

#include <stdexcept>

#include <CLI/CLI.hpp>

namespace bursar {
inline namespace v0 {

/// What a command throws for a request that cannot be carried out: exit code bad_request.
class BadRequest : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Each adds one command with its options, to be run when it is parsed.
void add_replay_command(CLI::App& app);

}  // namespace v0
}  // namespace bursar
