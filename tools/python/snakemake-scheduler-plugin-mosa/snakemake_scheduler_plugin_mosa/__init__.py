"""A Snakemake scheduler for workflows whose files lie in a Mosa store.
 Before any job starts, the store learns how each output will be used (hint rules, from the graph).
When a job is ready, it gets the host that holds most of its inputs: as resource `mosa_host` for the
executor `mosa`, and as `--prefer=HOST` for Slurm.
"""

import atexit
import os
import sys
import time
from dataclasses import dataclass, field

from snakemake_interface_scheduler_plugins.base import SchedulerBase
from snakemake_interface_scheduler_plugins.settings import SchedulerSettingsBase

from snakemake_scheduler_plugin_mosa.patterns import Task, plan_hints, plan_rules
from snakemake_scheduler_plugin_mosa.placement import Placement
from snakemake_scheduler_plugin_mosa.store import Store, StoreError


@dataclass
class SchedulerSettings(SchedulerSettingsBase):
    program: str = field(default="mosa", metadata={"help": "The program mosa"})
    hosts: str = field(
        default="",
        metadata={
            "help": "Where jobs may run, as the store names its nodes: a,b,c (default: all nodes)"
        },
    )
    slots: int = field(default=1, metadata={"help": "How many jobs a host runs at a time"})
    link_mbit: int = field(
        default=1000,
        metadata={
            "help": "What a host's link carries, in Mbit/s: is waiting shorter than moving bytes?"
        },
    )
    slurm: bool = field(
        default=False,
        metadata={
            "help": "Give jobs slurm_extra='--prefer=HOST': machines have their nodes' names as features"
        },
    )


def members(job):
    """The jobs of a group, or the one job."""
    return list(job.jobs) if job.is_group() else [job]


class Scheduler(SchedulerBase):
    def __post_init__(self):
        self.settings = self.settings or SchedulerSettings()
        self.store = Store(self.settings.program)
        self.placement = None
        self.tasks = {}  # {job: Task}, also of jobs that have finished.
        self.places = {}  # Of files that exist: {path: names of nodes}.
        self.rules = {}  # {glob: (hints, the rule's id)}
        # Snakemake runs itself once more for each job, with the same --scheduler: there is nothing
        # to decide there.
        self.idle = "--target-jobs" in sys.argv
        if self.idle:
            return
        try:
            hosts = [host for host in self.settings.hosts.split(",") if host] or self.store.nodes()
            if not hosts:
                raise StoreError("the store has no node that serves")
            self.placement = Placement(
                hosts, self.settings.slots, self.settings.link_mbit * 125_000
            )
            atexit.register(self.remove_rules)
        except StoreError as error:
            self.give_up(error)

    def give_up(self, error):
        """From now on Snakemake schedules by itself: a store that says nothing stops no
        workflow."""
        self.idle = True
        self.logger.warning(f"mosa: {error}. Jobs are scheduled without hints and locations.")

    # ---- hints

    def tag(self):
        """Has the store know the hints of what the jobs will write. Only rules that changed are
        sent.

        Snakemake 9.27 never calls dag_updated(), and tells of unfinished jobs only: so we look at
        each selection, and remember.
        """
        new = [job for job in self.dag.needrun_jobs() if job not in self.tasks]
        for job in new:
            self.tasks[job] = Task(
                tuple(map(str, job.input)),
                tuple(map(str, job.output)),
                frozenset(str(path) for path in job.output if path.is_flagged("temp")),
            )
        if not new:
            return
        tasks = list(self.tasks.values())
        outputs = [path for task in tasks for path in task.outputs]
        wanted = dict(plan_rules(outputs, plan_hints(tasks, len(self.placement.hosts))))
        for glob, hints in wanted.items():
            known = self.rules.get(glob)
            if known and known[0] == hints:
                continue
            self.rules[glob] = (hints, self.store.add_rule(os.path.abspath(glob), hints))
            if known:  # Of two rules for one glob the later wins: there is no moment without one.
                self.store.remove_rule(known[1])

    def remove_rules(self):
        """Files keep their hints; the next run of the workflow says its own."""
        for _, rule in self.rules.values():
            try:
                self.store.remove_rule(rule)
            except StoreError as error:
                self.logger.warning(f"mosa: {error}")
                return
        self.rules = {}

    # ---- places

    def select_jobs(self, selectable_jobs, remaining_jobs, available_resources, input_sizes):
        if self.idle:
            return None
        try:
            self.tag()
            return self.place(
                selectable_jobs, remaining_jobs, dict(available_resources), input_sizes
            )
        except StoreError as error:
            self.give_up(error)
            return None

    def place(self, selectable, remaining, free, sizes):
        now = time.monotonic()
        waiting = set(remaining)
        for job in list(self.placement.running):
            if job in waiting:
                self.placement.forget(job)
            elif all(self.dag.finished(member) for member in members(job)):
                self.placement.end(job, now)
        inputs = {
            job: {
                str(path): sizes.get(path) or 0 for member in members(job) for path in member.input
            }
            for job in selectable
        }
        self.locate({path for paths in inputs.values() for path in paths})
        chosen = []
        for job in sorted(selectable, key=lambda job: (-job.priority, -sum(inputs[job].values()))):
            needs = {
                name: amount for name, amount in job.scheduler_resources.items() if name in free
            }
            if any(amount > free[name] for name, amount in needs.items()):
                continue
            host = self.placement.place(job, self.bytes_by_host(inputs[job]), now)
            if host is None:
                continue
            self.send(job, host)
            chosen.append(job)
            for name, amount in needs.items():
                free[name] -= amount
        return chosen

    def locate(self, paths):
        """One question for all files whose place is not known yet."""
        unknown = sorted(path for path in paths if path not in self.places)
        answers = self.store.locations([os.path.abspath(path) for path in unknown])
        self.places.update({path: answers.get(os.path.abspath(path), []) for path in unknown})

    def bytes_by_host(self, inputs):
        held = {}
        for path, size in inputs.items():
            nodes = self.places[path]
            for node in nodes:
                held[node] = held.get(node, 0) + size / len(nodes)
        return held

    def send(self, job, host):
        resources = {"mosa_host": host}
        if self.settings.slurm:
            resources["slurm_extra"] = f"--prefer={host}"
        for member in members(job):
            for name, value in resources.items():
                # A job that is tried again keeps the host of its first attempt: Snakemake takes a
                # resource only once.
                if name not in member.scheduler_resources:
                    member.add_aux_resource(name, value)
        if job.is_group():
            # A group keeps what it computed from its jobs' resources before they had a host.
            job._resources = job._scheduler_resources = None


__all__ = ["Scheduler", "SchedulerSettings"]
