"""Clang checks that what a mutex guards is used only under it (-Wthread-safety; common/base/mutex.h).

    locks.py --build DIR     checks the product's sources; DIR has the generated headers and compile_commands.json
    locks.py --self-test     checks that a read without the lock is refused, and one under it is not

Tests are not checked. Ends with 77 if there is no clang.
"""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["client-sai", "common", "manager", "proto", "storage-node", "tools"]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
SELF_TEST = """
#include "common/base/mutex.h"
struct Counter {{
  mosa::SystemMutex mutex;
  int value ABSL_GUARDED_BY(mutex) = 0;
  int Get() {{
    {lock}
    return value;
  }}
}};
int main() {{ return Counter{{}}.Get(); }}
"""


def compiler():
    return next(filter(None, map(shutil.which, ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1))))), None)


def check(source, flags):
    command = [compiler(), "-std=c++20", "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", *flags, "-x", "c++", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, cwd=ROOT)


def flags_of(build):
    """Where the sources look for headers, and what they define, in any of the units."""
    flags = {}
    for unit in json.loads((build / "compile_commands.json").read_text()):
        words = iter(shlex.split(unit["command"]))
        for word in words:
            if word == "-isystem":
                flags[f"-isystem{next(words)}"] = None
            elif re.match(r"-I|-DFMT|-DSPDLOG|-DFUSE|-D_FILE", word):
                flags[word] = None
    return list(flags)


@functools.cache
def sees_a_mutex(name):
    """Whether a source or header includes common/base/mutex.h, however indirectly."""
    path = ROOT / name
    if name == "common/base/mutex.h" or not path.exists():
        return name == "common/base/mutex.h"
    return any(sees_a_mutex(included) for included in INCLUDE.findall(path.read_text()))


def units():
    """Lists of sources: those of a folder; in tools, whose sources do not share a namespace, single ones."""
    folders = collections.defaultdict(list)
    for top in FOLDERS:
        for source in sorted((ROOT / top).rglob("*.cc")):
            name = str(source.relative_to(ROOT))
            if not re.search(r"_(test|fuzz)\.cc$|^main\.cc$", source.name) and sees_a_mutex(name):
                folders[name if top == "tools" else str(source.parent)].append(name)
    return list(folders.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if compiler() is None:
        print("skipped: there is no clang++")
        return 77
    if arguments.self_test:
        refused = check(SELF_TEST.format(lock=""), [f"-I{ROOT}"])
        passed = check(SELF_TEST.format(lock="const mosa::SystemMutexLock lock(mutex);"), [f"-I{ROOT}"])
        if passed.returncode == 0 and refused.returncode != 0 and "requires holding mutex" in refused.stderr:
            return 0
        print(passed.stderr, refused.stderr, sep="\n")
        return 1
    flags = flags_of(arguments.build)
    sources = units()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = ("".join(f'#include "{name}"\n' for name in names) for names in sources)
        results = list(pool.map(lambda text: check(text, flags), texts))
    for result in results:
        sys.stdout.write(result.stderr)
    bad = sum(result.returncode != 0 for result in results)
    print(f"{sum(map(len, sources))} sources in {len(sources)} units, {bad} units with complaints")
    return 1 if bad or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
