"""The POSIX battery on one mount, and on two mounts of a cluster of four hosts."""

import os
import subprocess

import cluster


def run(battery, *paths):
    done = subprocess.run([battery, *paths], capture_output=True, text=True, timeout=900)
    print(done.stdout, end="", flush=True)
    return done.returncode == 0


def test(arguments):
    with cluster.Cluster(arguments.bin, 4, flags=["--allow-other"]) as store:
        paths = [f"{store.mount(host)}/battery" for host in ("h1", "h2")]
        os.mkdir(paths[0])
        os.chmod(paths[0], 0o777)
        one = run(arguments.battery, paths[0])
        two = run(arguments.battery, *paths)
        cluster.check(one, "the battery failed on one mount")
        cluster.check(two, "the battery failed on two mounts")


if __name__ == "__main__":
    cluster.main(
        test,
        limit_s=1200,
        description=__doc__,
        add_arguments=lambda parser: parser.add_argument("--battery", required=True),
    )
