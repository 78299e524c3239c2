"""kill -9 in the middle of a mount's writes: of our gateway, of the NFS server behind it, of the whole guest.

A client in the guest writes blocks, each with fsync(). Whatever dies, a write that was acknowledged is on the server's disk,
whole; the survivors go on: what was killed comes back and the client finishes, or a new client mounts.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from pathlib import Path

from lib.errors import ScenarioFailure, check, check_equal
from lib.ganesha import EXPORT, Ganesha
from lib.guest import HOST_ADDRESS, Guest, Job
from lib.iwarp_tool import IwarpProcess
from lib.kernel_nfsd import EXPORT as KERNEL_EXPORT
from lib.nfs_files import sha256
from lib.processes import free_port, wait_listening
from lib.scenario import ONCE, Context, scenario

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "guest"))
from acked_writes import block  # noqa: E402

_MOUNT_POINT = "/mnt/crash"
_BLOCK_BYTES = 100_000
_BLOCKS = 60
_KILL_AFTER = (1, 20, 40)       # acknowledged blocks
_TIMEOUT = 120.0


@scenario("gateway-killed", "our gateway is killed three times under a client that writes (v3), and comes back: nothing is lost",
          variants=ONCE)
def gateway_killed(context: Context) -> None:
    _kill_gateway(context, "gateway-killed", "3")


@scenario("gateway-killed-v4.1", "the same with v4.1, whose session outlives the connections", variants=ONCE)
def gateway_killed_v41(context: Context) -> None:
    _kill_gateway(context, "gateway-killed-v4.1", "4.1")


def _kill_gateway(context: Context, name: str, version: str) -> None:
    ganesha, port = context.services.ganesha, free_port()
    gateway = _gateway(context, port, ganesha)
    mount(context.guest, port, ganesha, version)
    job = write_blocks(context.guest, name)
    for blocks in _KILL_AFTER:
        await_acked(context.guest, name, blocks)
        gateway.child.kill()
        _check_acked(context.guest, name, ganesha)
        gateway = _gateway(context, port, ganesha)
    finish_blocks(context.guest, job, name, ganesha)
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)


@scenario("gateway-killed-back", "the same with a client of TCP (v4.1) and knfsd over siw behind the gateway", variants=ONCE)
def gateway_killed_back(context: Context) -> None:
    name, guest, port = "gateway-killed-back", context.guest, free_port()
    server = context.boot.nfsd.serve_rdma_also(context.take_rping_port())

    def start() -> IwarpProcess:
        gateway = context.iwarp("gateway", "--tcp-listen", f"127.0.0.1:{port}", "--rdma", f"127.0.0.1:{server}",
                                "--insecure-ports", "--crc", "prefer-off", "--no-p2p")
        wait_listening(port, "iwarp gateway", 10, gateway.child)
        return gateway
    gateway = start()
    guest.must(f"modprobe -a nfs nfsv4; mkdir -p {_MOUNT_POINT}; "
               f"mount -t nfs -o proto=tcp,port={port},vers=4.1,sec=sys,timeo=50 {HOST_ADDRESS}:/ {_MOUNT_POINT}", 60)
    job = write_blocks(guest, name)
    for blocks in _KILL_AFTER:
        await_acked(guest, name, blocks)
        gateway.child.kill()
        gateway = start()
    done = job.wait(_TIMEOUT)
    check_equal(f"exit status of the writer ({done.output.strip()})", done.status, 0)
    whole = b"".join(block(number, _BLOCK_BYTES) for number in range(_BLOCKS))
    check_equal("SHA-256 of the file on the server", guest.must(f"sha256sum < {KERNEL_EXPORT}/{name}", 60).split()[0],
                hashlib.sha256(whole).hexdigest())
    guest.must(f"umount {_MOUNT_POINT} && rm {KERNEL_EXPORT}/{name}", 60)
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)


@scenario("server-killed", "nfs-ganesha is killed three times behind our gateway and comes back: nothing is lost", variants=ONCE)
def server_killed(context: Context) -> None:
    server = Ganesha(context.log_directory, context.services.ganesha.root)
    server.start()
    try:
        port = free_port()
        gateway = _gateway(context, port, server)
        mount(context.guest, port, server, "3")
        job = write_blocks(context.guest, "server-killed")
        for blocks in _KILL_AFTER:
            await_acked(context.guest, "server-killed", blocks)
            server.kill()
            _check_acked(context.guest, "server-killed", server)
            time.sleep(0.5)     # for some attempts to connect to nobody
            server.start()
        finish_blocks(context.guest, job, "server-killed", server)
        check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    finally:
        server.stop()


@scenario("guest-killed", "the guest is killed while it writes (v4.1): what was acknowledged is there, a new client is served",
          variants=ONCE)
def guest_killed(context: Context) -> None:
    ganesha, port = context.services.ganesha, free_port()
    gateway = _gateway(context, port, ganesha)
    doomed = context.boot_another()
    mount(doomed, port, ganesha, "4.1")
    write_blocks(doomed, "guest-killed")
    await_acked(doomed, "guest-killed", _KILL_AFTER[1])
    doomed.kill()
    connections = gateway.closed_connections()
    check(connections[0].end in ("client closed", "connection lost"), f"the gateway lost the guest as {connections[0].end}")
    _check_acked(doomed, "guest-killed", ganesha)
    mount(context.guest, port, ganesha, "4.1")
    seen = context.guest.must(f"sha256sum < {_MOUNT_POINT}/guest-killed", 60).split()[0]
    check_equal("SHA-256 of the file as a new client sees it", seen, sha256(ganesha.root / "guest-killed"))
    _unmount(context.guest, ganesha, "guest-killed")
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)


def _gateway(context: Context, port: int, server: Ganesha) -> IwarpProcess:
    gateway = context.iwarp("gateway", "--rdma-listen", f"127.0.0.1:{port}", "--tcp", f"127.0.0.1:{server.nfs_port}",
                            "--allow", "127.0.0.0/8", "--crc", "prefer-off")
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    return gateway


def mount(guest: Guest, port: int, server: Ganesha, version: str) -> None:
    options = f"rdma,port={port},vers={version},sec=sys,timeo=50"
    if version == "3":
        options += f",nolock,mountaddr={HOST_ADDRESS},mountport={server.mount_port},mountproto=tcp"
    guest.must(f"modprobe -a nfs nfsv3 nfsv4 rpcrdma; mkdir -p {_MOUNT_POINT}; "
               f"mount -t nfs -o {options} {HOST_ADDRESS}:{EXPORT} {_MOUNT_POINT}", 60)


def _unmount(guest: Guest, server: Ganesha, name: str) -> None:
    guest.must(f"umount {_MOUNT_POINT}", 60)
    (server.root / name).unlink()


def write_blocks(guest: Guest, name: str) -> Job:
    return guest.spawn(f"python3 -B /run/interop/acked_writes.py {_MOUNT_POINT}/{name} {_BLOCKS} {_BLOCK_BYTES} {name}")


def acked(guest: Guest, name: str) -> int:
    """Blocks that the guest knows to be acknowledged."""
    found = re.findall(rf"{name} acked (\d+)\r?\n", guest.console.read_text(errors="replace"))
    return int(found[-1]) if found else 0


def await_acked(guest: Guest, name: str, blocks: int) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while acked(guest, name) < blocks:
        if time.monotonic() > deadline:
            raise ScenarioFailure(f"{acked(guest, name)} of {blocks} blocks were acknowledged within {_TIMEOUT:.0f} s")
        time.sleep(0.02)


def _check_acked(guest: Guest, name: str, server: Ganesha) -> None:
    blocks = acked(guest, name)
    content = (server.root / name).read_bytes()
    for number in range(blocks):
        found = content[number * _BLOCK_BYTES:(number + 1) * _BLOCK_BYTES]
        check(found == block(number, _BLOCK_BYTES), f"block {number} of {name} was acknowledged, and is not on the disk")


def finish_blocks(guest: Guest, job: Job, name: str, server: Ganesha) -> None:
    done = job.wait(_TIMEOUT)
    check_equal(f"exit status of the writer ({done.output.strip()})", done.status, 0)
    check_equal("blocks acknowledged", acked(guest, name), _BLOCKS)
    _check_acked(guest, name, server)
    check_equal("size of the file", (server.root / name).stat().st_size, _BLOCKS * _BLOCK_BYTES)
    _unmount(guest, server, name)
