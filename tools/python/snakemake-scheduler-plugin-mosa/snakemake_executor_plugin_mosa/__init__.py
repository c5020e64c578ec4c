"""A Snakemake executor that runs each job on a host of a cluster of `mosa cluster up`, in that
host's mount.
 It is Snakemake's own local executor, but that every job is a Snakemake of its own on the host
which the scheduler `mosa` chose (the resource `mosa_host`); without that scheduler hosts take
turns. How many run at a time: --jobs. Paths of the workflow are relative: a host sees the store at
its own mount point. Which cluster is meant: MOSA_CLUSTER, MOSA_CLUSTER_DIR.
"""

import concurrent.futures
import itertools
import os
import shlex
import subprocess
from dataclasses import dataclass, field

from snakemake.exceptions import SpawnedJobError
from snakemake.executors import local
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    auto_deploy_default_storage_provider=False,
)


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    program: str = field(default="mosa", metadata={"help": "The program mosa"})
    hosts: str = field(
        default="h1",
        metadata={"help": "The cluster's hosts for jobs that no scheduler placed: h1,h2"},
    )


def below_mount(directory):
    """`directory` below the mount that it is on."""
    top = os.path.realpath(directory)
    while not os.path.ismount(top):
        top = os.path.dirname(top)
    try:
        os.getxattr(top, "user.mosa.mount")
    except OSError as error:
        raise WorkflowError(
            f"mosa: {directory} is not on a Mosa mount; start Snakemake in a directory of one"
        ) from error
    return os.path.relpath(os.path.realpath(directory), top)


class Executor(local.Executor):
    def __post_init__(self):
        super().__post_init__()
        self.workers = self.workflow.resource_settings.nodes
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=self.workers)
        self.settings = self.workflow.executor_settings or ExecutorSettings()
        self.turns = itertools.cycle(self.settings.hosts.split(","))
        self.directory = below_mount(self.workflow.workdir_init)

    def get_job_exec_prefix(self, job):
        return f'cd "$MOSA_MOUNT"/{shlex.quote(self.directory)}'

    @property
    def job_specific_local_groupid(self):
        return True

    def get_job_args(self, job, **kwargs):
        # The job's own Snakemake may use the whole host, and never less than Snakemake has promised
        # the job: jobs that pipes connect run at the same time and fail with fewer cores.
        cores = max(os.cpu_count() or 1, job.resources.get("_cores", 1))
        return super().get_job_args(job, cores=cores, **kwargs)

    def run_single_job(self, job):
        return self.pool.submit(self.cached_or_run, job, self.spawn_job, job)

    def run_group_job(self, job):
        """All jobs of a group run in one Snakemake on one host, which starts those that a pipe
        connects at the same time."""
        self.spawn_job(job)

    def spawn_job(self, job):
        host = job.resources.get("mosa_host") or next(self.turns)
        command = [
            self.settings.program,
            "cluster",
            "exec",
            host,
            "--",
            "sh",
            "-c",
            self.format_job_exec(job),
        ]
        done = subprocess.run(command, check=False)
        if done.returncode != 0:
            raise SpawnedJobError()


__all__ = ["Executor", "ExecutorSettings", "common_settings"]
