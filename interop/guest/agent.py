"""Guest side of lib/guest.py: takes shell commands over a virtio port and reports status and output.

One JSON object a line, both ways. Requests: {"id", "op": "run", "command", "timeout", "stdin"?},
{"op": "spawn", "command"}, {"op": "wait", "job", "timeout"}, {"op": "kill", "job"}. Answers: {"id", "status", "output"}
(status null: the time was up, and the command has been killed) or {"id", "job"}. Output goes through files, never pipes,
so that a process stuck in the kernel cannot hold the agent.
"""

import glob
import json
import os
import signal
import subprocess
import tempfile
import time
from typing import Any

PORT_PATTERN = "/dev/vport*p*"
PORT_TIMEOUT = 20.0
OUTPUT_LIMIT = 256 * 1024


class Job:
    """A shell command in a process group of its own, with its output in a file."""

    def __init__(self, command: str, stdin: str | None) -> None:
        self._output = tempfile.TemporaryFile(dir="/run")
        source = subprocess.DEVNULL
        if stdin is not None:
            with tempfile.TemporaryFile(dir="/run") as text:
                text.write(stdin.encode())
                text.seek(0)
                source = os.dup(text.fileno())
        self._process = subprocess.Popen(["/bin/bash", "-c", command], stdin=source, stdout=self._output,
                                         stderr=self._output, start_new_session=True)
        if source != subprocess.DEVNULL:
            os.close(source)

    def wait(self, timeout: float) -> dict[str, Any]:
        try:
            status: int | None = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            status = None
        return {"status": status, "output": self._read()}

    def kill(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(2)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass

    def _read(self) -> str:
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - OUTPUT_LIMIT))
        return self._output.read().decode(errors="replace")


def find_port() -> str:
    """The virtio port appears a moment after its driver."""
    deadline = time.monotonic() + PORT_TIMEOUT
    while time.monotonic() < deadline:
        found = glob.glob(PORT_PATTERN)
        if found:
            return found[0]
        time.sleep(0.05)
    raise SystemExit(f"no {PORT_PATTERN} after {PORT_TIMEOUT:.0f} s: {sorted(os.listdir('/dev'))}")


def serve() -> None:
    jobs: dict[int, Job] = {}
    with open(find_port(), "r+b", buffering=0) as port:
        port.write(b'{"ready": true}\n')
        pending = b""
        while True:
            received = port.read(65536)
            if not received:
                time.sleep(0.02)   # the host side is not connected
                continue
            pending += received
            *lines, pending = pending.split(b"\n")
            for line in lines:
                request = json.loads(line)
                answer = {"id": request["id"], **handle(request, jobs)}
                reply = json.dumps(answer).encode() + b"\n"
                while reply:
                    reply = reply[port.write(reply):]


def handle(request: dict[str, Any], jobs: dict[int, Job]) -> dict[str, Any]:
    op = request["op"]
    if op == "run":
        return Job(request["command"], request.get("stdin")).wait(request["timeout"])
    if op == "spawn":
        jobs[request["id"]] = Job(request["command"], None)
        return {"job": request["id"]}
    if op == "wait":
        return jobs.pop(request["job"]).wait(request["timeout"])
    if op == "kill":
        jobs[request["job"]].kill()
        return jobs.pop(request["job"]).wait(1)
    return {"status": -1, "output": f"unknown operation {op!r}"}


if __name__ == "__main__":
    serve()
