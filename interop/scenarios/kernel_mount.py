"""Issue scenario 2b: the kernel's NFS client over RDMA, through our gateway, to nfs-ganesha over TCP."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from lib.capture import Traffic, messages_of
from lib.errors import check, check_equal
from lib.ganesha import EXPORT, Ganesha
from lib.guest import HOST_ADDRESS
from lib.iwarp_tool import Connection, total
from lib.nfs_files import BULK_BYTES, LIST_COUNT, ODD_SIZES, long_name, sha256
from lib.processes import free_port, wait_listening
from lib.scenario import Context, scenario

_MOUNT_POINT = "/mnt/nfs"
_ODD_BYTES = sum(ODD_SIZES)


@scenario("mount-v4.1", "kernel mounts vers=4.1,proto=rdma through the gateway: lists, reads, writes, links, odd sizes",
          revision_1=True)
def mount_v41(context: Context) -> None:
    _through_gateway(context, "4.1")


@scenario("mount-v4.0", "the same with vers=4.0")
def mount_v40(context: Context) -> None:
    _through_gateway(context, "4.0")


@scenario("mount-v3", "the same with vers=3; mountd directly over TCP")
def mount_v3(context: Context) -> None:
    _through_gateway(context, "3")


def _through_gateway(context: Context, version: str) -> None:
    ganesha = context.services.ganesha
    port = free_port()
    gateway = context.iwarp("gateway", "--rdma-listen", f"127.0.0.1:{port}", "--tcp", f"127.0.0.1:{ganesha.nfs_port}",
                            "--allow", "127.0.0.0/8", "--crc", "prefer-off")
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    use_mount(context, version, f"rdma,port={port}", ganesha)
    connections = gateway.closed_connections()
    # The client would hide a lost connection behind a replay.
    check_equal("how the connections of the mount ended", [c.end for c in connections], ["client closed"])
    for connection in connections:
        check_negotiated(context, connection)
    counters = total(connections)
    # Reads of the guest leave by RDMA Write, writes arrive by RDMA Read; the data is not in Sends.
    check(counters["tx_write_bytes"] >= BULK_BYTES + _ODD_BYTES, f"too little went out by RDMA Write: {counters}")
    check(counters["rx_read_bytes"] >= BULK_BYTES + _ODD_BYTES, f"too little came in by RDMA Read: {counters}")
    check(counters["tx_send_bytes"] < BULK_BYTES // 8, f"too much went out by Send: {counters}")
    check(counters["rx_send_bytes"] < BULK_BYTES // 8, f"too much came in by Send: {counters}")
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    context.traffic.append(Traffic(f"mount-v{version}", port, len(connections), messages_of(connections),
                                   context.peer_wants_crc))


def check_negotiated(context: Context, connection: Connection) -> None:
    """The kernel's NFS client initiates: CRC and RTR as in its variant; it gives us 128 Reads and asks for none."""
    rtr = context.peer_wants_rtr
    connection.check_negotiated("our gateway", {
        "role": "responder", "rev": str(context.peer_revision), "enhanced": str(context.peer_revision - 1), "crc": str(int(context.peer_wants_crc)),
        "p2p": str(int(rtr)), "rtr": "read" if rtr else "none"})
    connection.check_range("our gateway", "ord", 1, 128)
    # A Read RTR needs a place among the Reads that we serve.
    connection.check_range("our gateway", "ird", 1 if rtr else 0, 32)


def use_mount(context: Context, version: str, transport: str, ganesha: Ganesha) -> None:
    """Mount, work, compare with the server's disk, unmount. `transport` are the mount options that pick the way."""
    guest = context.guest
    guest.must("modprobe -a nfs nfsv3 nfsv4 rpcrdma; mkdir -p " + _MOUNT_POINT, 60)
    options = f"{transport},vers={version},sec=sys"
    if version == "3":
        options += f",nolock,mountaddr={HOST_ADDRESS},mountport={ganesha.mount_port},mountproto=tcp"
    scratch = f"out-{context.variant}-v{version}"
    shutil.rmtree(ganesha.root / scratch, ignore_errors=True)
    guest.must(f"mount -t nfs -o {options} {HOST_ADDRESS}:{EXPORT} {_MOUNT_POINT}", 60)
    sizes = ",".join(map(str, ODD_SIZES))
    report = json.loads(guest.must(f"python3 -B /run/interop/guest_io.py {_MOUNT_POINT} {scratch} 5044 {sizes}", 180))
    guest.must(f"umount {_MOUNT_POINT}", 60)
    (context.log_directory / f"report-v{version}.json").write_text(json.dumps(report, indent=1))
    compare_with_disk(report, ganesha.root, ganesha.root / scratch)
    shutil.rmtree(ganesha.root / scratch)


def compare_with_disk(report: dict[str, Any], root: Path, scratch: Path) -> None:
    """What the guest saw and did against the files on the server's disk."""
    names = "\n".join(sorted(long_name(index) for index in range(LIST_COUNT)))
    check_equal("names listed", report["listing"],
                {"count": LIST_COUNT, "sha256": hashlib.sha256(names.encode()).hexdigest()})
    check_equal("SHA-256 of the bulk file read", report["bulk_read"], sha256(root / "bulk"))
    check_equal("SHA-256 of the bulk file written", sha256(scratch / "bulk"), report["bulk_written"])
    for name, digest in report["odd"].items():
        where = root if name.startswith("odd-") else scratch
        check_equal(f"SHA-256 of {name}", sha256(where / name), digest)
    check_equal("names on the server's disk", sorted(os.listdir(scratch)), report["names"])
    check_equal("target of the symbolic link", os.readlink(scratch / "link"), report["links"]["link"])
    check_equal("content after the renames", [(scratch / name).read_bytes() for name in ("after", "victim")],
                [b"renamed\n"] * 2)
    check(not (scratch / "gone").exists() and not (scratch / "before").exists(), "removed names are still on the disk")
    check(not os.listdir(scratch / "directory"), "a removed directory is still on the disk")
