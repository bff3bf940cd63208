#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the picture of the frontier says: which rows count, and what beats what."""
import unittest
import xml.etree.ElementTree

import plot
from plot import Dot


def row(trace="a.csv", utilization=0.9, driver_us=10, **other):
    return {"trace": trace, "allocator": "bursar", "pass": 1, "completed": True,
            "utilization": utilization, "driver_time_us": driver_us, "trace_duration_us": 1000,
            **other}


class Rows(unittest.TestCase):
    def test_only_the_first_pass_of_bursar_counts(self):
        rows = [row(), row(utilization=0.5, **{"pass": 2}), row(allocator="torch", trace="b.csv")]
        self.assertEqual(plot.dots_of(rows), {"a.csv": Dot(0.01, 0.9)})

    def test_a_pass_that_ran_out_or_was_not_timed_has_no_dot(self):
        rows = [row(completed=False), row(trace="b.csv", driver_us=None)]
        self.assertEqual(plot.dots_of(rows), {"a.csv": None, "b.csv": None})

    def test_medians_are_over_traces_that_every_setting_completed(self):
        x = {"a": Dot(0.1, 0.8), "b": Dot(0.3, 0.9), "c": Dot(0.9, 0.1)}
        y = {"a": Dot(0.2, 0.7), "b": Dot(0.4, 0.9), "c": None}
        middle = plot.medians({"x": x, "y": y})
        self.assertAlmostEqual(middle["x"].share, 0.2)
        self.assertAlmostEqual(middle["x"].utilization, 0.85)
        self.assertAlmostEqual(middle["y"].utilization, 0.8)


class Frontier(unittest.TestCase):
    def test_a_dot_that_another_beats_in_both_is_not_on_it(self):
        dots = [Dot(3, 0.99), Dot(1, 0.9), Dot(2, 0.89), Dot(2, 0.95), Dot(4, 0.99)]
        self.assertEqual(plot.frontier(dots), [Dot(1, 0.9), Dot(2, 0.95), Dot(3, 0.99)])

    def test_marks_are_round_and_within(self):
        self.assertEqual(plot.steps(0, 10, 5), [0, 2, 4, 6, 8, 10])
        self.assertTrue(all(0.93 <= mark <= 1 for mark in plot.steps(0.93, 1, 4)))


class Picture(unittest.TestCase):
    def test_it_is_xml_whatever_a_label_says(self):
        settings = {"<a&b>": plot.dots_of([row()]), "c": plot.dots_of([row(utilization=0.99)])}
        root = xml.etree.ElementTree.fromstring(plot.draw(settings))
        texts = [element.text for element in root.iter() if element.tag.endswith("text")]
        self.assertIn("<a&b>", texts)
        self.assertIn("a", texts)

    def test_nothing_to_draw_is_an_error(self):
        with self.assertRaises(SystemExit):
            plot.draw({"x": plot.dots_of([row(completed=False)])})


if __name__ == "__main__":
    unittest.main()
