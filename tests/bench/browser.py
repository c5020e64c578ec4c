"""Headless Chromium for harnesses, told what to do over a pipe of its own (Chrome DevTools Protocol)."""

import base64
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

from cluster import check


def program():
    """Where Chromium is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One page in a browser without network, from `with` to its end."""

    LIMIT_S = 60  # Of an answer.

    def __init__(self, width=1280, height=1130):
        self.size = f"{width},{height}"
        self.number, self.read_bytes, self.messages = 0, b"", []

    def __enter__(self):
        with contextlib.ExitStack() as begun:
            profile = begun.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            ours, to_browser = self._pipes()
            for descriptor in ours:
                begun.callback(os.close, descriptor)
            command = [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
                       "--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={self.size}", f"--user-data-dir={profile}", "--remote-debugging-pipe"]
            # The protocol's descriptors are 3 and 4, which none of these is.
            words = ["bash", "-c", f'exec 3<&{to_browser[0]} 4>&{to_browser[1]}; exec "$@"', "bash", *command]
            self.child = subprocess.Popen(words, pass_fds=to_browser, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            begun.callback(self._end)
            for descriptor in to_browser:
                os.close(descriptor)
            self.reading, self.writing = ours
            target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
            self.session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            self.ask("Page.enable")
            self.ended = begun.pop_all()
        return self

    def __exit__(self, *_):
        self.ended.close()

    @staticmethod
    def _pipes():
        """Of each direction the end that is read and the end that is written: ours, and the browser's."""
        def pipe():
            low = os.pipe()
            high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
            for end in low:
                os.close(end)
            return high

        from_browser, to_browser = pipe(), pipe()
        return (from_browser[0], to_browser[1]), (to_browser[0], from_browser[1])

    def _end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()

    def _ask(self, method, parameters, session=None):
        self.number += 1
        words = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(words).encode() + b"\0"
        while data:
            data = data[os.write(self.writing, data):]
        answer = self._wait_for(lambda message: message.get("id") == words["id"])
        check("error" not in answer, f"{method}: {answer.get('error')}")
        return answer["result"]

    def _wait_for(self, is_wanted):
        limit = time.monotonic() + self.LIMIT_S
        while True:
            for message in self.messages:
                if is_wanted(message):
                    self.messages.remove(message)
                    return message
            left = max(0, limit - time.monotonic())
            check(select.select([self.reading], [], [], left)[0], f"the browser does not answer within {self.LIMIT_S} s")
            chunk = os.read(self.reading, 1 << 20)
            check(chunk, "the browser has ended")
            *whole, self.read_bytes = (self.read_bytes + chunk).split(b"\0")
            self.messages += map(json.loads, whole)

    def ask(self, method, **parameters):
        return self._ask(method, parameters, self.session)

    def evaluate(self, expression):
        """The value of a JavaScript expression; if it is a promise, what that comes to."""
        answer = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        check("exceptionDetails" not in answer, f"{expression}: {answer.get('exceptionDetails')}")
        return answer["result"].get("value")

    def open(self, path):
        """Seconds until the page is loaded and what it draws is on the screen."""
        began = time.monotonic()
        self.messages.clear()
        answer = self.ask("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        check("errorText" not in answer, f"{path}: {answer.get('errorText')}")
        self._wait_for(lambda message: message.get("method") == "Page.loadEventFired")
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - began

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
