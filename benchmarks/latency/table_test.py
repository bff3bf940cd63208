#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the table says: which runs count, which clock, and what is divided by what."""
import pathlib
import tempfile
import unittest

import table


def run(name, real=10.0, cpu=10.0, **other):
    return {"name": name, "run_type": "iteration", "real_time": real, "cpu_time": cpu,
            "time_unit": "ns", **other}


def results(*runs, device="sim"):
    return {"context": {"device": device, "num_cpus": 2, "mhz_per_cpu": 1}, "benchmarks": [*runs]}


def team(threads, allocator, rate):
    return run(f"threads_own_stream/{threads}/{allocator}/iterations:1", pairs_per_second=rate)


class Values(unittest.TestCase):
    def test_repetitions_count_and_aggregates_do_not(self):
        collected = table.collect(results(
            run("pingpong/512/bursar/min_time:0.100", cpu=3), run("pingpong/512/bursar", cpu=5),
            run("pingpong/512/bursar_median", cpu=9) | {"run_type": "aggregate"}))
        self.assertEqual(collected, {"pingpong/512": {"bursar": [3, 5]}})

    def test_time_is_wall_time_on_a_gpu_and_in_its_unit(self):
        slow = run("churn/100/torch", real=2, cpu=1) | {"time_unit": "us"}
        self.assertEqual(table.collect(results(slow, device="NVIDIA H200")),
                         {"churn/100": {"torch": [2000]}})
        self.assertEqual(table.collect(results(slow)), {"churn/100": {"torch": [1000]}})

    def test_workloads_stand_in_a_fixed_order(self):
        names = ["churn/100", "threads_own_stream/1", "pingpong/4096", "pingpong/512"]
        collected = table.collect(results(*[run(f"{name}/bursar", pairs_per_second=1)
                                            for name in names]))
        self.assertEqual([*collected], ["pingpong/512", "pingpong/4096", "churn/100",
                                        "threads_own_stream/1"])

    def test_spread_is_half_the_interquartile_range(self):
        self.assertAlmostEqual(table.spread([8, 9, 10, 11, 12]), 0.1)
        self.assertEqual(table.spread([7]), 0)


class Ratios(unittest.TestCase):
    def test_time_is_beside_the_yardstick_of_the_same_run(self):
        collected = table.collect(results(run("pingpong/512/bursar", cpu=30),
                                          run("pingpong/4096/tcmalloc", cpu=10)))
        self.assertEqual(table.ratio(collected, "pingpong/512"), "3.0")

    def test_scaling_is_beside_the_yardsticks_scaling(self):
        collected = table.collect(results(team(1, "bursar", 1e6), team(4, "bursar", 2e6),
                                          team(1, "tcmalloc", 1e8), team(4, "tcmalloc", 4e8)))
        self.assertEqual(table.ratio(collected, "threads_own_stream/4"), "0.50")
        self.assertEqual(table.cell(collected, "threads_own_stream/4", "bursar"), "2 ±0% x2.00")

    def test_without_a_yardstick_there_is_no_ratio(self):
        collected = table.collect(results(run("pingpong/512/bursar"), team(4, "bursar", 2e6)))
        self.assertEqual([table.ratio(collected, workload) for workload in collected], ["-", "-"])


class Output(unittest.TestCase):
    def test_a_column_for_each_allocator_and_a_dash_where_nothing_was_measured(self):
        collected = table.collect(results(run("pingpong/512/bursar"), run("churn/100/torch")))
        lines = [line.split() for line in table.format_rows(table.rows_of(collected))]
        self.assertEqual(lines[0], ["workload", "unit", "bursar", "/", "tcmalloc", "torch"])
        self.assertEqual(lines[2], ["churn/100", "ns/pair", "-", "-", "10", "±0%"])

    def test_a_busy_machine_is_told(self):
        busy = results(run("pingpong/512/bursar", real=20, cpu=10))
        self.assertTrue(any("50%" in note for note in table.notes(busy)))

    def test_a_file_without_results_is_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = pathlib.Path(folder, "empty.json")
            empty.write_text("")
            self.assertEqual(table.read_results([empty])["benchmarks"], [])


if __name__ == "__main__":
    unittest.main()
