"""One QEMU guest with one siw variant, or with a Debian of its own, and the channel that runs commands in it.

No KVM (stock kernels do not boot everywhere under it) and no privileges: TCG, user networking, forwarded ports. The guest
sees the host's root read-only; the host is 10.0.2.2 for it. All its TCP is in `capture`.
"""

from __future__ import annotations

import json
import shlex
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from lib.errors import ScenarioFailure, SetupError
from lib.processes import Child, Children, free_port
from lib.siw_build import Peer

HOST_ADDRESS = "10.0.2.2"       # the host, seen from the guest
GUEST_ADDRESS = "10.0.2.15"
SCTP_UDP_PORT = 9899            # in the guest, of the kernel's SCTP in UDP (RFC 6951)
_BOOT_TIMEOUT = 180.0     # 8-15 s on an idle machine of two cores, with systemd twice that
# Nobody logs in, and apt is not to update anything on its own.
_SYSTEMD = "systemd.getty_auto=no systemd.mask=getty.target systemd.mask=timers.target"


@dataclass(frozen=True)
class Outcome:
    """What a command in the guest did. status None means that it was killed when its time was up."""

    status: int | None
    output: str


class Job:
    """A command that runs in the guest in the background."""

    def __init__(self, guest: "Guest", number: int, command: str) -> None:
        self._guest = guest
        self._number = number
        self.command = command

    def wait(self, timeout: float) -> Outcome:
        answer = self._guest._ask({"op": "wait", "job": self._number, "timeout": timeout}, timeout + 10)
        return self._guest._outcome(self.command, timeout, answer)

    def kill(self) -> str:
        """End it; returns its output."""
        return self._guest._ask({"op": "kill", "job": self._number}, 15)["output"]


class Guest:
    """A booted guest. `forwards` maps guest TCP ports to ports of 127.0.0.1 on the host, where `sctp_udp_port` is its SCTP_UDP_PORT. Its
    root is the host's, or that in the directory `debian`, which has systemd; what is written there is gone when the guest is."""

    def __init__(self, peer: Peer, variant: str, directory: Path, children: Children, guest_ports: Sequence[int],
                 debian: Path | None = None) -> None:
        self.variant = variant
        self.console = directory / "console.log"
        self.capture = directory / "traffic.pcap"
        self.command_log = directory / "guest-commands.log"
        self._log = open(self.command_log, "a", buffering=1)
        self.forwards = {port: free_port() for port in guest_ports}
        self.sctp_udp_port = free_port(socket.SOCK_DGRAM)
        self._next_id = 0
        self._pending = b""
        ours, theirs = socket.socketpair()
        self._channel = ours
        root = f"debian={debian} {_SYSTEMD}" if debian else ""
        with theirs:
            self._qemu: Child = children.start("qemu", self._argv(peer, theirs.fileno(), root), directory / "qemu.log",
                                               pass_fds=[theirs.fileno()])
        self._await_agent()

    def _argv(self, peer: Peer, channel_fd: int, root: str) -> list[str]:
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{host}-:{guest}" for guest, host in self.forwards.items())
        forwards += f",hostfwd=udp:127.0.0.1:{self.sctp_udp_port}-:{SCTP_UDP_PORT}"
        return [
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048",
            "-display", "none", "-vga", "none", "-monitor", "none", "-no-reboot", "-serial", f"file:{self.console}",
            "-kernel", str(peer.kernel), "-initrd", str(peer.initramfs),
            "-append", f"console=ttyS0 panic=-1 quiet siw={self.variant} guest=siw-{self.variant} {root}",
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
            "-netdev", f"user,id=n0{forwards}", "-device", "virtio-net-pci,netdev=n0,romfile=",
            "-object", f"filter-dump,id=dump0,netdev=n0,file={self.capture}",
            "-chardev", f"socket,id=agent,fd={channel_fd}", "-device", "virtio-serial-pci",
            "-device", "virtserialport,chardev=agent,name=interop.agent",
        ]

    def _await_agent(self) -> None:
        try:
            if not self._read_line(time.monotonic() + _BOOT_TIMEOUT).get("ready"):
                raise SetupError("the guest's agent greeted with something unexpected")
        except ScenarioFailure as failure:
            raise SetupError(f"guest '{self.variant}' did not boot within {_BOOT_TIMEOUT:.0f} s ({failure}); "
                             f"see {self.console}") from None

    def run(self, command: str, timeout: float = 30.0, *, stdin: str | None = None) -> Outcome:
        """Run a shell command to its end; fails the scenario when it takes longer than `timeout` seconds."""
        request: dict[str, Any] = {"op": "run", "command": command, "timeout": timeout}
        if stdin is not None:
            request["stdin"] = stdin
        return self._outcome(command, timeout, self._ask(request, timeout + 10))

    def must(self, command: str, timeout: float = 30.0, *, stdin: str | None = None) -> str:
        """Output of a command that has to succeed."""
        done = self.run(command, timeout, stdin=stdin)
        if done.status != 0:
            raise ScenarioFailure(f"in the guest, `{command}` ended with status {done.status}: {done.output[-1500:].strip()}")
        return done.output

    def spawn(self, command: str) -> Job:
        """Start a shell command in the background."""
        return Job(self, self._ask({"op": "spawn", "command": command}, 10)["job"], command)

    def wait_listening(self, port: int, timeout: float, *, rdma: bool = False) -> None:
        """Wait until the guest listens on a TCP port (a siw listener shows in /proc/net/tcp like any other)."""
        kind = "RDMA" if rdma else "TCP"
        probe = f"grep -qi ':{port:04X} [0-9A-F]*:0000 0A' /proc/net/tcp /proc/net/tcp6"
        done = self.run(f"until {probe}; do sleep 0.1; done", timeout)
        if done.status != 0:
            raise ScenarioFailure(f"nothing in the guest listens on {kind} port {port}")

    def load_siw(self) -> None:
        """Attach siw to the guest's Ethernet interface."""
        self.must("modprobe -a libcrc32c crc32c_generic ib_core iw_cm rdma_ucm ib_uverbs && insmod /run/interop/siw.ko && "
                  "rdma link add siw0 type siw netdev eth0 && rdma link show siw0/1", 60)

    def stop(self) -> None:
        """Power the guest off. The capture is complete afterwards."""
        self._qemu.stop()
        self._close()

    def kill(self) -> None:
        """Power fails: nothing is said to any peer but what the host's kernel says when QEMU's sockets go."""
        self._qemu.kill()
        self._close()

    def _close(self) -> None:
        self._channel.close()
        self._log.close()

    def _outcome(self, command: str, timeout: float, answer: dict[str, Any]) -> Outcome:
        if answer["status"] is None:
            raise ScenarioFailure(f"in the guest, `{command}` did not finish within {timeout:.0f} s; "
                                  f"its output: {answer['output'][-500:].strip() or '(none)'}")
        return Outcome(answer["status"], answer["output"])

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        self._next_id += 1
        request["id"] = self._next_id
        shown = request.get("command") or f"{request['op']} job {request.get('job')}"
        self._log.write(f"[{time.strftime('%H:%M:%S')}] {request['op']}: {shown}\n")
        try:
            self._channel.settimeout(10)
            self._channel.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise ScenarioFailure(f"the guest is gone ({error})") from None
        deadline = time.monotonic() + timeout
        while True:
            answer = self._read_line(deadline)
            if answer.get("id") == request["id"]:    # others are late answers to requests given up
                if "status" in answer:
                    self._log.write(f"  -> status {answer['status']}\n{answer['output']}")
                return answer

    def _read_line(self, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ScenarioFailure("the guest does not answer")
            self._channel.settimeout(left)
            try:
                received = self._channel.recv(1 << 20)
            except TimeoutError:
                continue
            except OSError as error:
                raise ScenarioFailure(f"the guest is gone ({error})") from None
            if not received:
                raise ScenarioFailure("QEMU closed the guest's agent channel")
            self._pending += received
        line, self._pending = self._pending.split(b"\n", 1)
        return json.loads(line)


def quoted(*words: str) -> str:
    """A shell command line from plain words."""
    return shlex.join(words)
