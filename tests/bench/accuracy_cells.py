"""Which cells accuracy.py predicts and runs: the subsets, with the sizes and links that each number of hosts has.

A cell's links have a rate (`100mbit`), or are as fast as the machine moves bytes (`none`). Two cores carry all links of an
emulated cluster: the more hosts, the slower links are, so that they and not the cores are the limit (the column LINK BUSY
tells), and the smaller files are, so that a run takes seconds.
"""

import collections

Cell = collections.namedtuple("Cell", "pattern size scale system hosts rate store", defaults=("mosa",))
# Of a store: its name in cells, and its systems. GlusterFS hashes whole files over hosts (dht), or keeps them where they are
# written (nufa).
SYSTEMS = {"mosa": ("dss", "wass"), "disk": ("dss", "wass"), "gluster": ("dht", "nufa")}
Grid = collections.namedtuple("Grid", "rate scales")
PATTERNS = ("pipeline", "reduce", "broadcast", "scatter", "gather")
GRID = {4: Grid("100mbit", {"small": 1, "medium": 0.1, "large": 0.02}),
        8: Grid("100mbit", {"small": 1, "medium": 0.1, "large": 0.02}),
        19: Grid("50mbit", {"small": 1, "medium": 0.03, "large": 0.005})}
WEAK = Grid("50mbit", {"medium": 0.03})
WEAK_HOSTS = (2, 4, 8, 12, 16, 19)
# Of each node. The kernel writes by itself where 1 GiB is free: either at all times, or never, as many hosts have no memory for
# that here.
RAM, RAM_OF_MANY, MANY_HOSTS = "2G", "900M", 9
LOOPBACK = Grid("none", {"medium": 2})
DISK = Grid("none", {"medium": 1})
GLUSTER = Grid("100mbit", {"medium": 0.1})


def cells_of(patterns, sizes, hosts, grid=None, store="mosa", copies=(1, 2, 4, 8)):
    """With as many copies of what is broadcast, and one for each host."""
    for count in hosts:
        rate, scales = grid or GRID[count]
        for size in sizes:
            for pattern in patterns:
                first, second = SYSTEMS[store]
                counts = sorted({n for n in (*copies, count) if n <= count}) if pattern == "broadcast" else [0]
                systems = [first, *(f"{second}-{n}" if n and store != "gluster" else second for n in counts)]
                for system in dict.fromkeys(systems):
                    yield Cell(pattern, size, scales[size], system, count, rate, store)


SIZES = ("small", "medium", "large")
Subset = collections.namedtuple("Subset", "repeats cells")  # How often a cell is run: at least, at most.
SUBSETS = {
    "quick": Subset((3, 5), lambda: cells_of(PATTERNS, ("medium",), (4,), copies=(1,))),
    "main": Subset((3, 3), lambda: [*cells_of(PATTERNS, SIZES, (4, 8), copies=(1,)), *cells_of(PATTERNS, SIZES, (19,))]),
    "all": Subset((3, 20), lambda: cells_of(PATTERNS, SIZES, GRID)),
    # Weak scaling: what each host does stays as it is.
    "scaling": Subset((3, 5), lambda: cells_of(("pipeline", "broadcast", "reduce"), ("medium",), WEAK_HOSTS, WEAK, copies=())),
    "loopback": Subset((3, 5), lambda: cells_of(PATTERNS, ("medium",), (4,), LOOPBACK, copies=(1,))),
    "stores": Subset((3, 5), lambda: [
        *cells_of(PATTERNS, ("medium",), (4,), DISK, "disk", copies=(1,)),
        *cells_of(("pipeline", "reduce", "broadcast"), ("medium",), (4,), GLUSTER, "gluster")]),
}
