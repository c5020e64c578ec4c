"""On which host each job runs: where most of its input lies, unless that host is busy for longer
than moving bytes takes.

Pure: what is running, how long jobs take and where files lie come in as values.
"""

import collections


class Placement:
    """Which jobs run where. Not safe for use from several threads.

    How many jobs there may be at a time is for Snakemake to say (--cores, --jobs): a host of which
    all slots are taken is avoided, but when all hosts' are, the one with the least to do gets the
    next job.
    """

    def __init__(self, hosts, slots, link_bytes_per_second):
        self.hosts = list(hosts)
        self.slots = slots
        self.link = link_bytes_per_second
        self.running = {}  # {job: (host, start)}
        self.ended_seconds = 0.0
        self.ended_count = 0

    def load(self):
        taken = collections.Counter({host: 0 for host in self.hosts})
        taken.update(host for host, _ in self.running.values())
        return taken

    def forget(self, job):
        """It has failed, and may be placed anew."""
        self.running.pop(job, None)

    def end(self, job, now):
        _, start = self.running.pop(job)
        self.ended_seconds += now - start
        self.ended_count += 1

    def place(self, job, bytes_by_host, now):
        """The host that `job` starts on now, or None: it is better off waiting for the host of its
        inputs."""
        load = self.load()
        order = {host: number for number, host in enumerate(self.hosts)}

        def least_to_move(host):
            return (-bytes_by_host.get(host, 0), load[host], order[host])

        free = [host for host in self.hosts if load[host] < self.slots]
        if not free:
            choice = min(self.hosts, key=lambda host: (load[host], *least_to_move(host)))
        else:
            choice = min(free, key=least_to_move)
            best = min(self.hosts, key=least_to_move)
            more_bytes = bytes_by_host.get(best, 0) - bytes_by_host.get(choice, 0)
            if more_bytes > 0 and more_bytes / self.link > self.wait_seconds():
                return None
        self.running[job] = (choice, now)
        return choice

    def wait_seconds(self):
        """How long a busy host stays so: half a job, as jobs have been until now. Endless if nobody
        knows."""
        return self.ended_seconds / self.ended_count / 2 if self.ended_count else float("inf")
