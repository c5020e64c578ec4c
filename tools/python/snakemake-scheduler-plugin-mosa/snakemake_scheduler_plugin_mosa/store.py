"""The store, asked through the program `mosa`. Which cluster is meant: MOSA_CLUSTER, or
MOSA_MANAGER and MOSA_SECRET."""

import json
import subprocess


class StoreError(Exception):
    """The store did not answer; the text says why."""


class Store:
    def __init__(self, program):
        self.program = program

    def _run(self, *words, text=None, partial=False):
        try:
            done = subprocess.run(
                [self.program, *words, "--json"],
                input=text,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(
                f"'{self.program} {' '.join(words)}' cannot be run: {error}"
            ) from error
        if done.returncode != 0 and not (partial and done.stdout):
            raise StoreError(f"'{self.program} {' '.join(words)}' failed: {done.stderr.strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def nodes(self):
        """Names of the storage nodes that serve."""
        return [node["name"] for node in self._run("node", "list") if node["state"] == "live"]

    def add_rule(self, glob, hints):
        """Returns the rule's id."""
        return self._run("hint", "rule", "add", glob, *hints)["id"]

    def remove_rule(self, rule):
        self._run("hint", "rule", "remove", str(rule))

    def locations(self, paths):
        """{path: names of the nodes that hold it, most bytes first}; what is not there or not in
        the store is left out."""
        if not paths:
            return {}
        answers = self._run(
            "where", "--from", "-", text="".join(f"{path}\n" for path in paths), partial=True
        )
        return {answer["path"]: answer["nodes"] for answer in answers if answer.get("nodes")}
