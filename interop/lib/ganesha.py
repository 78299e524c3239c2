"""nfs-ganesha on 127.0.0.1, run by scripts/ganesha: the TCP NFS server that the gateway serves over RDMA."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from lib.errors import SetupError
from lib.processes import free_port, run_tool

EXPORT = "/export"      # the name of the exported directory for v3 and v4
_SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "ganesha"
_TIMEOUT = 60.0


class Ganesha:
    """A server, from start() to stop(). `nfs_port` and `mount_port` are TCP ports of 127.0.0.1, `root` is exported."""

    def __init__(self, directory: Path, root: Path) -> None:
        self.root = root
        self.nfs_port = free_port()
        self.mount_port = free_port()
        self._work = directory / "ganesha"

    def start(self) -> None:
        self._run("start", "--export", str(self.root), "--nfs-port", str(self.nfs_port), "--mount-port", str(self.mount_port))

    def kill(self) -> None:
        """kill -9. start() brings it back, with the same ports and directory."""
        os.kill(int((self._work / "ganesha.pid").read_text()), signal.SIGKILL)
        self.stop()     # its helpers

    def stop(self) -> None:
        """Harmless when it does not run, or was started only by half."""
        self._run("stop")

    def _run(self, action: str, *arguments: str) -> None:
        done = run_tool([str(_SCRIPT), action, "--work", str(self._work), *arguments], _TIMEOUT)
        if done.returncode != 0:
            raise SetupError(done.stderr.decode(errors="replace").strip()[-2000:])
