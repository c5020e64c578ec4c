"""The POSIX battery on one mount, and on two mounts of a cluster of four hosts."""

import os
import subprocess

import cluster

LIMIT_S = 400


def run(battery, *paths):
    """True if it passed. A check that hangs in the kernel cannot be ended: nobody waits for it."""
    battery = subprocess.Popen([battery, *paths])
    try:
        return battery.wait(timeout=LIMIT_S) == 0
    except subprocess.TimeoutExpired:
        battery.kill()
        raise cluster.Failed(f"the battery hangs: not done after {LIMIT_S} s") from None


def test(arguments):
    with cluster.Cluster(arguments.bin, 4, flags=["--allow-other"]) as store:
        paths = [f"{store.mount(host)}/battery" for host in ("h1", "h2")]
        os.mkdir(paths[0])
        os.chmod(paths[0], 0o777)
        print("one mount:", flush=True)
        one = run(arguments.battery, paths[0])
        print("two mounts:", flush=True)
        two = run(arguments.battery, *paths)
        cluster.check(one, "the battery failed on one mount")
        cluster.check(two, "the battery failed on two mounts")


if __name__ == "__main__":
    cluster.main(
        test,
        limit_s=850,
        description=__doc__,
        add_arguments=lambda parser: parser.add_argument("--battery", required=True),
    )
