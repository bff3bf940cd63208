// SPDX-License-Identifier: Apache-2.0
// The `bursar` command: finds the command asked for, runs it, turns what went wrong into one line
// on stderr and an exit code.
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include <bursar/core/config.hpp>
#include <bursar/core/error.hpp>

#include "command.hpp"
#include "exit_code.hpp"
#include "replay/trace.hpp"

namespace bursar {
inline namespace v0 {
namespace {

ExitCode complain(ExitCode code, const char* what) {
  fmt::print(stderr, "bursar: {}\n", what);
  return code;
}

ExitCode run(int argc, const char* const* argv) {
  CLI::App app{"Bursar: device memory for many tasks.", "bursar"};
  app.set_version_flag("--version",
                       fmt::format("bursar {}.{}.{}", kVersionMajor, kVersionMinor, kVersionPatch));
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 something failed, 2 the request or its input is unusable.");
  add_replay_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? ExitCode::done : ExitCode::bad_request;
  } catch (const TraceError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return ExitCode::bad_request;
  } catch (const BadRequest& e) {
    return complain(ExitCode::bad_request, e.what());
  } catch (const Error& e) {
    const bool callers = e.details().kind == ErrorKind::invalid_argument;
    return complain(callers ? ExitCode::bad_request : ExitCode::failed, e.what());
  } catch (const std::exception& e) {
    return complain(ExitCode::failed, e.what());
  }
  return ExitCode::done;
}

}  // namespace
}  // namespace v0
}  // namespace bursar

int main(int argc, char** argv) { return static_cast<int>(bursar::run(argc, argv)); }
