# SPDX-License-Identifier: Apache-2.0
"""Each gate lets a good repository pass and catches the bad line that it is there for."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from house import GATES, HERE, find_problems

HOUSE = HERE / "house.py"
LICENSE = "// SPDX-License-Identifier: Apache-2.0\n// Why.\n"
GOOD = {
    "include/bursar/core/config.hpp": LICENSE + "#define BURSAR_EXPORT\n",
    "include/bursar/core/bytes.hpp": LICENSE + """
#include <bursar/core/config.hpp>
// A comment may say static int, thread_local and "#include <fmt/format.h>" elsewhere.
inline namespace v0 {
extern "C" {
int bursar_version(void);
}
struct Bytes {
  static constexpr Bytes max() { return {}; }
  inline friend bool operator==(Bytes, Bytes) { return true; }
};
inline constexpr int kOne = 1;
static const char* const kNames[] = {"static int x;"};
inline std::function<void(int)> sink() { return {}; }
}
""",
    "include/bursar/driver/driver.hpp": LICENSE + "#include <bursar/core/bytes.hpp>\n",
    "src/driver/driver.cpp": LICENSE + '#include "sim.hpp"\n#include <fmt/format.h>\n',
    "src/driver/sim.hpp": LICENSE + "static int private_state;\n",
}


def write_tree(root, files):
    for path, text in files.items():
        place = pathlib.Path(root, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


class GateTest(unittest.TestCase):
    def gate(self, name, changes):
        """What a gate finds in the good repository with files added or replaced."""
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, GOOD | changes)
            return find_problems(root, [name])

    def assert_catches(self, gate, path, text, message, line=3):
        found = self.gate(gate, {path: LICENSE + text})
        self.assertTrue(any((problem.path, problem.line) == (path, line) and
                            message in problem.text and not problem.warning for problem in found),
                        [str(problem) for problem in found])

    def test_a_good_repository_passes_every_gate(self):
        for name in GATES:
            with self.subTest(name):
                self.assertEqual(self.gate(name, {}), [])

    def test_an_empty_repository_is_refused(self):
        with tempfile.TemporaryDirectory() as root, self.assertRaises(FileNotFoundError):
            find_problems(root, GATES)

    def test_the_exit_status_tells_good_from_bad_from_misused(self):
        with tempfile.TemporaryDirectory() as root:
            def status(*arguments):
                return subprocess.run([sys.executable, HOUSE, "--root", root, *arguments],
                                      capture_output=True, check=False).returncode
            write_tree(root, GOOD)
            self.assertEqual(status(), 0)
            self.assertEqual(status("no_such_gate"), 2)
            write_tree(root, {"src/core/bare.cpp": "int x;\n"})
            self.assertEqual(status("license_line"), 1)

    def test_an_upward_include_in_a_header_or_a_source_is_caught(self):
        for path in ("include/bursar/core/up.hpp", "src/core/up.cpp"):
            self.assert_catches("layering", path, "#include <bursar/driver/driver.hpp>\n",
                                "core includes include/bursar/driver/driver.hpp")

    def test_layers_on_one_line_do_not_know_each_other(self):
        found = self.gate("layering", {
            "src/replay/replay.hpp": LICENSE,
            "src/capi/capi.cpp": LICENSE + '#include "replay/replay.hpp"\n'})
        self.assertEqual([problem.path for problem in found], ["src/capi/capi.cpp"])

    def test_an_include_cycle_within_a_layer_is_caught(self):
        found = self.gate("layering", {
            "include/bursar/core/a.hpp": LICENSE + "#include <bursar/core/b.hpp>\n",
            "include/bursar/core/b.hpp": LICENSE + "#include <bursar/core/a.hpp>\n"})
        self.assertEqual(len(found), 1)
        self.assertIn("include/bursar/core/a.hpp -> include/bursar/core/b.hpp", found[0].text)

    def test_a_public_header_that_includes_a_private_one_is_caught(self):
        self.assert_catches("layering", "include/bursar/driver/leak.hpp",
                            "#include <driver/sim.hpp>\n", "private src/driver/sim.hpp")

    def test_an_include_of_no_file_is_caught(self):
        self.assert_catches("layering", "src/core/lost.cpp", '#include "gone.hpp"\n', "no file")

    def test_a_file_outside_the_layers_is_caught(self):
        self.assert_catches("layering", "src/utils/text.cpp", "", "lies in no layer", line=1)
        self.assert_catches("layering", "include/bursar/core/deep/er.hpp", "",
                            "include/bursar/<layer>/", line=1)

    def test_a_long_file_is_caught_and_a_longish_header_warned_about(self):
        self.assert_catches("file_length", "src/core/long.cpp", "\n" * 399, "401 lines", line=401)
        warned = self.gate("file_length", {"include/bursar/core/long.hpp": "\n" * 300})
        self.assertEqual([problem.warning for problem in warned], [True])

    def test_a_long_line_is_caught(self):
        self.assert_catches("columns", "src/core/wide.cpp", "x" * 101 + "\n", "101 columns")

    def test_a_missing_license_and_a_missing_reason_are_caught(self):
        found = self.gate("license_line", {"src/core/bare.cpp": "// Why.\n",
                                             "tests/bare.py": "import sys\n",
                                             "scripts/bare": "#!/bin/sh\ntrue\n",
                                             "src/core/odd.cpp": LICENSE.splitlines()[0] + "\n"})
        self.assertEqual(len(found), 4, found)

    def test_two_headers_of_one_name_are_caught(self):
        self.assert_catches("unique_headers", "src/driver/bytes.hpp", "", "bytes.hpp is also",
                            line=1)

    def test_fmt_in_a_public_header_is_caught(self):
        self.assert_catches("no_fmt", "include/bursar/core/text.hpp", "#include <fmt/format.h>\n",
                            "fmt in a public header")

    def test_macros_beyond_the_house_rules_are_caught(self):
        self.assert_catches("macros", "include/bursar/core/bytes.hpp", "#define BURSAR_X\n",
                            "macro outside")
        self.assert_catches("macros", "include/bursar/core/config.hpp", "# define X 1\n",
                            "not named BURSAR_*")
        many = "".join(f"#define BURSAR_{i}\n" for i in range(9))
        self.assert_catches("macros", "include/bursar/core/config.hpp", many, "9 macros", line=1)

    def test_mutable_state_in_a_public_header_is_caught(self):
        for bad in ("inline int counter = 0;", "static std::mutex lock;", "extern int shared;",
                    "inline std::function<void(int)> sink;", "static int slots[4];",
                    "static const char* name = nullptr;", "thread_local int depth;",
                    "inline Sink& the_sink() { static Sink sink; return sink; }",
                    "struct A { inline static std::atomic<int> count{0}; };",
                    "constinit int start = 1;", "namespace { int hidden; }"):
            with self.subTest(bad):
                self.assert_catches("no_mutable_state", "include/bursar/core/state.hpp", bad + "\n",
                                    "in a public header")

    def test_a_todo_without_an_issue_is_caught(self):
        self.assert_catches("no_bare_todo", "src/core/later.cpp", "// TODO: finish\n", "TODO")
        found = self.gate("no_bare_todo", {"src/core/l.cpp": LICENSE + "// TODO(issue-12): x\n"})
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
