"""Which folder may include which: ARCHITECTURE.md's table of arrows, as a rule.

A folder may include itself, what its row names, and whatever those may include. Generated headers ("mosa/v1/...") and
third-party families are allowed only where GENERATED and EXTERNAL say so.
"""

ARROWS = {
    "common/base": [],
    "common/model": ["common/base"],
    "common/observe": ["common/base"],
    "manager/placement": ["common/model"],
    "manager/core": ["manager/placement"],
    "manager/forecast": ["manager/placement"],
    "manager/store": ["common/model"],
    "storage-node/core": ["common/model"],
    "storage-node/store": ["storage-node/core"],  # The format of records of checksums is pure.
    "client-sai/core": ["common/model"],
    "proto/convert": ["common/model", "common/observe"],
    "manager/service": ["manager/core", "manager/forecast", "manager/store", "proto/convert"],
    "storage-node/service": ["storage-node/core", "storage-node/store", "proto/convert", "client-sai/api"],
    "client-sai/api": ["proto/convert"],
    "client-sai/trace": ["common/model", "common/observe"],
    "client-sai/sai": ["client-sai/core", "client-sai/api", "client-sai/trace"],
    "client-sai/fuse": ["client-sai/sai"],
    "tools/cluster": ["client-sai/api"],
    "tools/wrap": ["client-sai/fuse"],
    "predictor/workflow": ["common/model"],
    "predictor/trace": ["predictor/workflow"],
    "predictor/des": ["common/base"],
    "predictor/model": ["predictor/workflow"],
    "predictor/run": ["predictor/des", "predictor/model", "manager/core", "manager/forecast", "client-sai/core",
                      "storage-node/core"],
    "predictor/explore": ["predictor/run"],
    "predictor/advise": ["predictor/explore"],
    "predictor/compare": ["predictor/run"],
    "predictor/identify": ["predictor/run"],
    "predictor/envelope": ["predictor/workflow"],
    "predictor/capacity": ["predictor/envelope"],
    "tools/console": ["tools/cluster"],
    "tools/hosts": ["tools/console", "predictor/workflow"],
    "tools/runner": ["tools/hosts"],
    "tools/stage": ["tools/hosts"],
    "tools/measure": ["tools/runner", "predictor/identify", "predictor/capacity"],
    "tools/forecast": ["tools/measure", "predictor/trace", "predictor/advise", "predictor/compare"],
    "tools/draw": ["tools/forecast"],
    "tools/observe": ["tools/forecast"],
    "tools/mosa": ["tools/stage", "tools/draw", "tools/observe", "tools/wrap"],
}

# Deterministic folders: no clock, thread, file, randomness, log, unordered container (ARCHITECTURE.md, "Boundary").
PURE = ["common/model", "manager/placement", "manager/core", "manager/forecast", "storage-node/core", "client-sai/core",
        "predictor/workflow", "predictor/trace", "predictor/des", "predictor/model", "predictor/run",
        "predictor/explore", "predictor/advise", "predictor/capacity", "predictor/compare", "predictor/envelope",
        "predictor/identify"]

GENERATED = ["proto/convert", "manager/service", "storage-node/service", "client-sai/api"]

# What also runs in virtual time, compiled with other locks (common/base/sync.h). Code that is linked to it, but compiled
# once, would see another Mutex of the same name.
VIRTUAL_TIME = ("client-sai/sai/", "client-sai/api/wait_budget.h", "storage-node/service/copier")

# A third-party family and the only folders whose product code may include it.
EXTERNAL = {
    "grpc": ["proto/convert", "manager/service", "storage-node/service", "client-sai/api"],
    "google/protobuf": GENERATED,
    "rocksdb": ["manager/store"],
    "fuse": ["client-sai/fuse", "tools/wrap"],
    "spdlog": ["common/base"],
    "openssl": ["proto/convert"],
    "isa-l": ["common/base"],
    "microhttpd": ["common/observe"],
    "yaml-cpp": ["predictor/workflow"],
    "CLI": ["manager/service", "storage-node/service", "client-sai/fuse", "tools/mosa"],
}


def reachable(folder):
    seen = set()
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        waiting.extend(ARROWS[at])
    return seen


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2])


def check_include(path, line_number, include):
    """Returns a complaint, or None. `include` is the text between the quotes or angle brackets."""
    folder = folder_of(path)
    if folder not in ARROWS:
        return None
    if include.startswith("mosa/v1/"):
        if folder not in GENERATED:
            return f"{path}:{line_number}: {folder} includes generated '{include}': convert in proto/convert instead"
        return None
    for family, allowed in EXTERNAL.items():
        if include == family or include.startswith(family + "/") or (family == "grpc" and include.startswith("grpcpp/")):
            if folder not in allowed:
                return f"{path}:{line_number}: {folder} includes '{include}': only {', '.join(allowed)} may"
            return None
    if include == "common/base/sync.h" and not path.startswith(VIRTUAL_TIME) and not path.endswith("_test.cc"):
        return f"{path}:{line_number}: '{include}' is for what also runs in virtual time: use common/base/mutex.h"
    target = folder_of(include)
    if target in ARROWS and target not in reachable(folder):
        return f"{path}:{line_number}: {folder} includes {target} ('{include}'): no such arrow; see tests/tidy/layering.py"
    if include.startswith("tests/") and not path.endswith(("_test.cc", "_fuzz.cc")):
        return f"{path}:{line_number}: product code includes '{include}': nothing includes tests"
    return None
