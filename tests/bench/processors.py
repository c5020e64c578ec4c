"""Processor seconds: what a prediction takes, beside what the run takes that it predicts.

A run's are those of all its tasks and daemons, kernel threads not counted: on a cluster of namespaces, of all its hosts. Of
applications they have `mosa run` itself in them, and --before.
"""

import resource
import statistics

TIMES = 2000  # A prediction is to take this part of its run's.
CPU_TITLES = ["RUN CPU S", "PREDICTION CPU S", "TIMES", "EACH FURTHER CPU S", "TIMES"]


def children_cpu_s():
    """Of all programs that this one has started, and those have, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def prediction_cpu_s(predict, draws):
    """predict(N) runs `mosa predict --repeats N`. Of the program with one simulation, the median of five; and of each
    further simulation in it, as an interval or `mosa explore` needs them: there the program's start counts no more."""
    def cpu_s(repeats):
        before = children_cpu_s()
        predict(repeats)
        return children_cpu_s() - before

    alone = statistics.median(cpu_s(0) for _ in range(5))
    return {"predict_cpu_s": alone, "draw_cpu_s": max(0.0, cpu_s(draws) - alone) / draws}


def times(entry, key):
    """How many predictions' processor seconds a run has; none is below a ten-thousandth second."""
    return entry["run_cpu_s"] / max(entry[key], 1e-4)


def cpu_row(entry):
    """Of CPU_TITLES."""
    return [f"{entry['run_cpu_s']:.2f}", f"{entry['predict_cpu_s']:.4f}", f"{times(entry, 'predict_cpu_s'):.0f}",
            f"{entry['draw_cpu_s']:.4f}", f"{times(entry, 'draw_cpu_s'):.0f}"]
