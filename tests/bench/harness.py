"""What the harnesses here have in common: how they run commands, how they end, and where they keep what they have measured."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import time

from cluster import Failed, check

TROUBLE = (Failed, subprocess.SubprocessError, OSError)  # Of one measurement: the others go on.


def run(*command, limit_s=580):
    """What it prints. It has a session of its own: when its time is over, what it has started ends with it."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as child:
        try:
            out, errors = child.communicate(timeout=limit_s)
        except BaseException:  # Ctrl-C too: it does not reach another session.
            end_group(child)
            raise
    check(child.returncode == 0, f"{' '.join(map(str, command))}: {errors.strip()[-1500:]}")
    return out


def end_group(child):
    """Asks first, so that programs remove what they have made, clusters too."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=40)  # To the end of all that write to it.


def end_as_interrupted():
    """SIGTERM ends this program as Ctrl-C does: through every `with`, once."""
    def interrupt(number, _):
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def digest(value):
    """A short name of bytes, or of what JSON can say."""
    content = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.sha256(content).hexdigest()[:12]


def build_of(binaries):
    """The commit of the checkout that the programs were built in, as it is now, and a hash of the programs themselves."""
    def git(*words):
        return subprocess.run(["git", "-C", binaries, *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    programs = b"".join((binaries / name).read_bytes() for name in ("mosa", "mosa-manager", "mosa-storage", "mosa-mount"))
    return {"commit": (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else ""),
            "programs": digest(programs)}


class Kept:
    """What was measured of cells, one line of JSON each; later lines are newer. What other programs have measured, or these
    with other settings, counts with `any_commit` alone."""

    def __init__(self, path, build, any_commit, cell_type, settings_of=lambda cell: {}):
        self.path, self.build, self.settings_of = path, build, settings_of
        self.any_commit, self.cells = any_commit, {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            with contextlib.suppress(json.JSONDecodeError):  # A line that was cut short was not measured.
                entry = json.loads(line)
                self.cells.setdefault(cell_type(**entry["cell"]), []).append(entry)

    def all(self, cell):
        """The oldest first."""
        return [entry for entry in self.cells.get(cell, []) if self.any_commit or self._is_of_this(cell, entry)]

    def find(self, cell):
        """The newest, or None."""
        return next(reversed(self.all(cell)), None)

    def is_missing(self, cell):
        """It is not there, or has failed."""
        return "failed" in (self.find(cell) or {"failed": "not measured"})

    def add(self, cell, facts):
        entry = {"cell": cell._asdict(), **self.build, **self.settings_of(cell),
                 "when": time.strftime("%F %TZ", time.gmtime()), **facts}
        self.cells.setdefault(cell, []).append(entry)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def _is_of_this(self, cell, entry):
        wanted = {"programs": self.build["programs"], **self.settings_of(cell)}
        return all(entry.get(key) == value for key, value in wanted.items())


def platform_of(arguments, key, programs, settings, put_up):
    """Measured before any pattern runs, with these programs, on the store that put_up() is, of three hosts. `settings`: what else
    the store is of."""
    if key in arguments.platform:
        return arguments.platform[key]
    path = arguments.out / f"platform-{key}-{digest(settings)}-{programs}.json"
    if not path.exists():
        with put_up() as store:
            run(*arguments.before, arguments.bin / "mosa", "identify", *store.words(), "-o", path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
    return path
