"""What the plug-in decides: hints from the graph, rules from hints, hosts for jobs. No Snakemake,
no store."""

import pathlib
import sys
import types
import unittest

# The modules below need no Snakemake; the package's own __init__ does, and is left out.
PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "snakemake_scheduler_plugin_mosa"
package = types.ModuleType("snakemake_scheduler_plugin_mosa")
package.__path__ = [str(PACKAGE)]
sys.modules.setdefault("snakemake_scheduler_plugin_mosa", package)

from snakemake_scheduler_plugin_mosa.patterns import (  # noqa: E402
    Task,
    group_of,
    plan_hints,
    plan_rules,
)  # noqa: E402
from snakemake_scheduler_plugin_mosa.placement import Placement  # noqa: E402


def task(inputs, outputs, temporary=()):
    return Task(tuple(inputs.split()), tuple(outputs.split()), frozenset(temporary))


GATHER = task("c/1 c/2 c/3", "all")
CHAINS = [
    task("", "table"),
    *[task("", f"a/{i}") for i in "123"],
    *[task(f"a/{i}", f"b/{i}") for i in "123"],
    *[task(f"b/{i} table", f"c/{i}") for i in "123"],
    GATHER,
]


class Hints(unittest.TestCase):
    def test_each_pattern_is_told_from_the_graph(self):
        plans = plan_hints(CHAINS, hosts=4)
        self.assertEqual(plans["a/1"], ("pattern=pipeline",))
        self.assertEqual(plans["table"], ("pattern=broadcast:3",))
        self.assertEqual(plans["c/2"], (f"pattern=reduce:{group_of(GATHER)}",))
        self.assertNotIn("all", plans)

    def test_a_file_that_another_job_reads_too_makes_no_reduce(self):
        plans = plan_hints(
            [task("", "x"), task("", "y"), task("x y", "z"), task("y", "w")], hosts=4
        )
        self.assertEqual(plans["x"], ("pattern=pipeline",))

    def test_copies_are_shared_out_among_the_files_of_a_level(self):
        many = [task("", f"m/{i}") for i in range(4)] + [
            task(" ".join(f"m/{i}" for i in range(4)), f"n/{i}") for i in range(9)
        ]
        self.assertEqual(plan_hints(many, hosts=4)["m/0"], ("placement=local",))
        self.assertEqual(plan_hints(many, hosts=8)["m/0"], ("pattern=broadcast:2",))
        self.assertEqual(
            plan_hints([task("", "t"), *[task("t", f"r/{i}") for i in range(99)]], 64)["t"],
            ("pattern=broadcast:8",),
        )

    def test_the_rule_that_names_the_results_reads_nothing(self):
        self.assertEqual(plan_hints([task("", "x"), task("", "y"), task("x y", "")], hosts=4), {})

    def test_temporary_outputs_say_so(self):
        plans = plan_hints([task("", "x y", ["x", "y"]), task("x", "z")], hosts=2)
        self.assertEqual(plans["x"], ("pattern=pipeline", "lifetime=temporary"))
        self.assertEqual(plans["y"], ("lifetime=temporary",))

    def test_a_long_chain_is_no_deep_recursion(self):
        chain = [task(f"f{i}", f"f{i + 1}") for i in range(5000)]
        self.assertEqual(plan_hints(chain, hosts=2)["f5"], ("pattern=pipeline",))

    def test_groups_are_words_that_the_store_takes(self):
        self.assertRegex(group_of(task("x", "out dir/a b=ü*.txt")), r"^[0-9A-Za-z_.-]{1,50}$")
        self.assertNotEqual(group_of(task("", "d/a b")), group_of(task("", "d/a_b")))


class Rules(unittest.TestCase):
    def test_a_directory_with_one_wish_is_one_rule(self):
        plans = plan_hints(CHAINS, hosts=4)
        outputs = [path for one in CHAINS for path in one.outputs]
        self.assertEqual(
            plan_rules(outputs, plans),
            [
                ("table", ("pattern=broadcast:3",)),
                ("a/*", ("pattern=pipeline",)),
                ("b/*", ("pattern=pipeline",)),
                ("c/*", (f"pattern=reduce:{group_of(GATHER)}",)),
            ],
        )

    def test_else_every_file_has_its_own(self):
        self.assertEqual(
            plan_rules(["d/x*", "d/[y]", "d/z"], {"d/x*": ("h",), "d/[y]": ("i",)}),
            [("d/x\\*", ("h",)), ("d/\\[y]", ("i",))],
        )


class Places(unittest.TestCase):
    def placement(self, slots=1):
        return Placement(["h1", "h2", "h3"], slots, link_bytes_per_second=100)

    def test_goes_where_most_bytes_are(self):
        self.assertEqual(self.placement().place("a", {"h2": 10, "h3": 9}, now=0), "h2")

    def test_without_bytes_hosts_take_turns(self):
        placement = self.placement()
        self.assertEqual([placement.place(job, {}, now=0) for job in "abc"], ["h1", "h2", "h3"])

    def test_waits_for_a_busy_host_if_moving_takes_longer(self):
        placement = self.placement()
        placement.place("a", {}, now=0)
        placement.end("a", now=4)  # Jobs take 4 s: a busy host is free in 2.
        placement.place("b", {"h2": 1}, now=4)
        self.assertIsNone(placement.place("c", {"h2": 201}, now=4))
        self.assertEqual(placement.place("d", {"h2": 200}, now=4), "h1")

    def test_a_failed_job_frees_its_slot(self):
        placement = self.placement()
        placement.place("a", {"h2": 1}, now=0)
        placement.forget("a")
        self.assertEqual(placement.place("a", {"h2": 1}, now=0), "h2")

    def test_more_jobs_than_slots_go_to_the_least_busy_host(self):
        placement = self.placement()
        for job in "abc":
            placement.place(job, {}, now=0)
        placement.end("b", now=1)
        placement.place("d", {"h2": 5}, now=1)
        placement.forget("c")
        placement.place("e", {}, now=1)
        self.assertEqual(placement.place("f", {"h3": 5}, now=1), "h3")


if __name__ == "__main__":
    unittest.main()
