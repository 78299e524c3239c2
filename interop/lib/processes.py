"""Child processes of a run: started with a log file each, remembered by pid, ended by pid on every way out."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Callable, Sequence

from lib.errors import ScenarioFailure

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    # Even if this runner is killed outright, its children do not outlive it.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """One running program. Its stderr goes to `log`, which can be watched while it runs, its stdout to a file beside it."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, *, pass_fds: Sequence[int] = ()) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as errors, open(log.with_suffix(".out"), "ab") as out:
            errors.write(f"$ {' '.join(argv)}\n".encode())
            errors.flush()
            # A session of its own: Ctrl-C reaches only the runner, which then ends the children in order.
            self._popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                           pass_fds=tuple(pass_fds), start_new_session=True,
                                           preexec_fn=_die_with_parent)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def running(self) -> bool:
        return self._popen.poll() is None

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_exit(self, timeout: float) -> int:
        """Exit status; fails the scenario when the program still runs after `timeout` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ScenarioFailure(f"{self.name} (pid {self.pid}) did not exit within {timeout:.0f} s") from None

    def output_text(self) -> str:
        """Its stdout so far."""
        return self.log.with_suffix(".out").read_text(errors="replace")

    def wait_log(self, wanted: Callable[[str], bool], what: str, timeout: float) -> str:
        """Log text once `wanted(text)` holds; fails when the program exits or `timeout` passes before that."""
        deadline = time.monotonic() + timeout
        while True:
            running = self.running()
            text = self.log_text()
            if wanted(text):
                return text
            if not running:
                raise ScenarioFailure(f"{self.name} exited with status {self._popen.returncode} before {what}; "
                                      f"last line: {_last_line(text)}")
            if time.monotonic() > deadline:
                raise ScenarioFailure(f"{self.name}: no {what} within {timeout:.0f} s; last line: {_last_line(text)}")
            time.sleep(0.03)

    def stop(self, grace: float = 5.0) -> int:
        """SIGTERM, then SIGKILL after `grace` seconds. Returns the exit status; harmless when it has ended."""
        if self.running():
            self._popen.terminate()
            try:
                self._popen.wait(grace)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        return self._popen.returncode

    def kill(self) -> None:
        """SIGKILL, at once."""
        self._popen.kill()
        self._popen.wait()


class Children:
    """All children of one scope; stop_all() ends them, the youngest first."""

    def __init__(self) -> None:
        self._alive: list[Child] = []

    def start(self, name: str, argv: Sequence[str], log: Path, *, pass_fds: Sequence[int] = ()) -> Child:
        child = Child(name, argv, log, pass_fds=pass_fds)
        self._alive.append(child)
        return child

    def stop_all(self) -> None:
        while self._alive:
            self._alive.pop().stop()


def run_tool(argv: Sequence[str], timeout: float, *, log: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a short program to its end; stdout is returned, stderr too. A hang fails the scenario."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
                              start_new_session=True, preexec_fn=_die_with_parent)
    except subprocess.TimeoutExpired:
        raise ScenarioFailure(f"{argv[0]} did not finish within {timeout:.0f} s: {' '.join(argv)}") from None
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as out:
            out.write(f"$ {' '.join(argv)}\n".encode() + done.stderr + f"[exit {done.returncode}]\n".encode())
    return done


_GIVEN_PORTS: set[int] = set()


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    """A port of 127.0.0.1 that nobody listens on now, below the ephemeral range so that no client socket takes it. Never the
    same twice: who was given it may be about to listen."""
    for _ in range(1000):
        port = 20000 + int.from_bytes(os.urandom(2), "big") % 12000
        if port in _GIVEN_PORTS:
            continue
        with socket.socket(socket.AF_INET, kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _GIVEN_PORTS.add(port)
            return port
    raise ScenarioFailure("no free TCP port between 20000 and 32000 on 127.0.0.1")


def listening(port: int) -> bool:
    """Whether some process on this machine listens on a TCP port. Asked of the kernel: a probing connection would be
    taken for a peer."""
    row = re.compile(rf":{port:04X} [0-9A-F]+:0000 0A ")
    return any(row.search(Path(table).read_text()) for table in ("/proc/net/tcp", "/proc/net/tcp6"))


def wait_listening(port: int, what: str, timeout: float, child: Child) -> None:
    """Wait until `child` (or anyone) listens on a TCP port."""
    deadline = time.monotonic() + timeout
    while not listening(port):
        if not child.running():
            raise ScenarioFailure(f"{what} exited early; last line: {_last_line(child.log_text())}")
        if time.monotonic() > deadline:
            raise ScenarioFailure(f"{what} does not listen on port {port} after {timeout:.0f} s")
        time.sleep(0.03)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "(nothing)"
