"""`iwarp gateway --device siw0` in guests, over libibverbs, librdmacm and the kernel's siw: no stack of ours on the wire, in either role."""

from __future__ import annotations

import shlex
import time

from lib.errors import ScenarioFailure, check, check_equal
from lib.ganesha import EXPORT
from lib.guest import HOST_ADDRESS, Guest, Job
from lib.iwarp_tool import parse_connections, total
from lib.kernel_nfsd import EXPORT as NFSD_EXPORT
from lib.nfs_files import ODD_SIZES, sha256
from lib.scenario import ONCE, Context, scenario

_MOUNT_POINT = "/mnt/device"
_MIB = 1 << 20
_WRITTEN = 8 * _MIB
_NAMES = [f"odd-{size}" for size in ODD_SIZES]
_TIMEOUT = 120.0


@scenario("device", "gateway --device siw0 in a guest, before nfs-ganesha, mounted by the kernel of another guest; there one before the first guest's kernel nfsd",
          variants=ONCE)
def both_directions(context: Context) -> None:
    near, far = context.guest, context.boot_another()
    far.must(f"modprobe -a nfs nfsv4 rpcrdma; mkdir -p {_MOUNT_POINT}; head -c {_WRITTEN} /dev/urandom > /tmp/written", 60)
    written = far.must("sha256sum /tmp/written", 30).split()[0]
    _front(context, near, far, written)
    _back(context, far, written)


def _front(context: Context, near: Guest, far: Guest, written: str) -> None:
    """Clients over the device."""
    ganesha = context.services.ganesha
    port = context.take_rping_port()
    gateway = _Gateway(near, context, "--rdma-listen", f"0.0.0.0:{port}", "--tcp", f"{HOST_ADDRESS}:{ganesha.nfs_port}")
    copy = ganesha.root / "device-written"
    try:
        near.wait_listening(port, 60, rdma=True)
        far.must(f"mount -t nfs -o rdma,port={near.forwards[port]},vers=4.1,sec=sys {HOST_ADDRESS}:{EXPORT} {_MOUNT_POINT}", _TIMEOUT)
        listed = far.must(f"cd {_MOUNT_POINT} && sha256sum {shlex.join(_NAMES)}", _TIMEOUT)
        check_equal("SHA-256 sums of the files read", dict(reversed(line.split()) for line in listed.splitlines()),
                    {name: sha256(ganesha.root / name) for name in _NAMES})
        far.must(f"cp /tmp/written {_MOUNT_POINT}/{copy.name} && umount {_MOUNT_POINT}", _TIMEOUT)
        check_equal("SHA-256 of the file written", sha256(copy), written)
    except ScenarioFailure as failure:
        raise ScenarioFailure(f"{failure}; the gateway says: {gateway.log()[-1500:]}") from None
    finally:
        copy.unlink(missing_ok=True)
    counters = gateway.ended("client closed")
    # What this end asked for: long reads of the client leave by RDMA Write, what it writes is fetched by RDMA Read.
    check(counters["tx_write_bytes"] >= max(ODD_SIZES), f"too little went out by RDMA Write: {counters}")
    check(counters["rx_read_bytes"] >= _WRITTEN, f"too little came in by RDMA Read: {counters}")
    check(counters["tx_send_bytes"] < _MIB and counters["rx_send_bytes"] < _MIB, f"too much went by Send: {counters}")
    gateway.stop()


def _back(context: Context, far: Guest, written: str) -> None:
    """A server over the device."""
    server = context.boot.nfsd.guest
    server.must(f"head -c {2 * _MIB} /dev/urandom > {NFSD_EXPORT}/device-read", 30)
    port = context.boot.nfsd.serve_rdma_also(context.take_rping_port())
    gateway = _Gateway(far, context, "--tcp-listen", "127.0.0.1:2050", "--rdma", f"{HOST_ADDRESS}:{port}")
    try:
        far.wait_listening(2050, 60)
        far.must(f"mount -t nfs -o proto=tcp,port=2050,vers=4.1,sec=sys 127.0.0.1:/ {_MOUNT_POINT}", _TIMEOUT)
        read = far.must(f"sha256sum {_MOUNT_POINT}/device-read", _TIMEOUT).split()[0]
        far.must(f"cp /tmp/written {_MOUNT_POINT}/device-written && umount {_MOUNT_POINT}", _TIMEOUT)
    except ScenarioFailure as failure:
        raise ScenarioFailure(f"{failure}; the gateway says: {gateway.log()[-1500:]}") from None
    sums = server.must(f"cd {NFSD_EXPORT} && sha256sum device-read device-written && rm device-read device-written", _TIMEOUT).split()
    check_equal("SHA-256 sums of the files read and written", [read, written], sums[::2])
    counters = gateway.ended("done")
    check(counters["rx_send"] > 0, f"no message was received: {counters}")
    gateway.stop()


class _Gateway:
    """A gateway that runs in a guest."""

    def __init__(self, guest: Guest, context: Context, *arguments: str) -> None:
        words = [f"/run/host{context.binary}", "--debug", "gateway", "--device", "siw0", "--allow", "127.0.0.0/8,10.0.2.0/24", *arguments]
        self._guest = guest
        self._job: Job = guest.spawn(f"exec {shlex.join(words)} > /run/interop/gateway.log 2>&1")

    def log(self) -> str:
        return self._guest.must("cat /run/interop/gateway.log")

    def ended(self, how: str) -> dict[str, int]:
        """The sums of its connections, all of which have ended so."""
        deadline = time.monotonic() + 15
        while True:
            connections = parse_connections(self.log())
            if connections and all(c.end is not None for c in connections):
                break
            check(time.monotonic() < deadline, f"connections over siw0 do not end: {self.log()[-1500:]}")
            time.sleep(0.2)
        check_equal("how they ended", {c.end for c in connections}, {how})
        for connection in connections:
            connection.check_negotiated("the gateway", {"device": "siw0"})
        return total(connections)

    def stop(self) -> None:
        self._guest.must("pkill -TERM -x iwarp")
        check_equal("exit status of the gateway after SIGTERM", self._job.wait(20).status, 0)
