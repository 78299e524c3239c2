"""NFSv4.2 through our gateway, with the kernel at both ends: its client on the RDMA side, then its server. Both run in the
guest, the gateway between them; the exported file system is ext4 in a file, which knows extended attributes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from lib.capture import Traffic, messages_of
from lib.errors import check, check_equal
from lib.guest import HOST_ADDRESS
from lib.iwarp_tool import IwarpProcess, total
from lib.kernel_nfsd import EXPORT, RDMA_PORT
from lib.processes import free_port, wait_listening
from lib.scenario import ONCE, Context, scenario

_MOUNT_POINT = "/mnt/nfs42"
_DISK = f"{EXPORT}/disk"
_BULK = 5 << 20     # what guest/nfs42_io.py writes, and reads, in one file
_MAKE_DISK = f"""
set -e
mountpoint -q {_DISK} && exit
modprobe -a loop ext4
truncate -s 64M /srv/disk
mkfs.ext4 -q -b 4096 /srv/disk
mkdir -p {_DISK}
mount -o loop,user_xattr /srv/disk {_DISK}
exportfs -o rw,fsid=42,insecure,no_root_squash,no_subtree_check,sync '*:{_DISK}'
"""
_MUST_HAPPEN = ("COPY", "SEEK", "ALLOCATE", "DEALLOCATE", "GETXATTR", "SETXATTR", "LISTXATTRS", "REMOVEXATTR")


@scenario("nfs4.2-front", "COPY, SEEK, ALLOCATE and extended attributes: the kernel mounts v4.2 over RDMA through the gateway to knfsd over TCP",
          variants=ONCE)
def front(context: Context) -> str:
    nfsd, port = context.boot.nfsd, free_port()
    gateway = _start(context, port, "--rdma-listen", f"127.0.0.1:{port}", "--tcp", f"127.0.0.1:{nfsd.tcp_port}",
                     "--allow", "127.0.0.0/8", "--crc", "prefer-off")
    note = _use(context, f"rdma,port={port}")
    connections = gateway.closed_connections()
    check_equal("how the connections of the mount ended", [c.end for c in connections], ["client closed"])
    counters = total(connections)
    check(counters["tx_write_bytes"] >= _BULK and counters["rx_read_bytes"] >= _BULK, f"too little went by RDMA: {counters}")
    _check_callback(context, gateway)
    context.traffic.append(Traffic("nfs4.2-front", port, 1, messages_of(connections), False))
    return note


@scenario("nfs4.2-back", "the same over TCP, to knfsd over siw: data of READ in Write chunks, of WRITE in Read chunks at their Position",
          variants=ONCE)
def back(context: Context) -> str:
    nfsd, port = context.boot.nfsd, free_port()
    trace = context.log_directory / "trace.txt"
    gateway = _start(context, port, "--tcp-listen", f"127.0.0.1:{port}", "--rdma", f"127.0.0.1:{nfsd.rdma_port}",
                     "--insecure-ports", "--crc", "prefer-off", "--no-p2p", "--trace", str(trace))
    note = _use(context, f"proto=tcp,port={port}")
    connections = gateway.closed_connections()
    check(len(connections) == 1 and connections[0].end in ("done", "aborted"),
          f"the connections to the server ended: {[c.end for c in connections]}")
    counters = total(connections)
    check(counters["rx_write_bytes"] >= _BULK and counters["tx_read_bytes"] >= _BULK, f"too little went by RDMA: {counters}")
    _check_callback(context, gateway)
    context.traffic.append(Traffic("nfs4.2-back", RDMA_PORT, 1, messages_of(connections), False))
    return f"{note}; {check_chunks(trace)}"


def check_chunks(trace: Path) -> str:
    """What the gateway sent to the server, and got: data in chunks of their own, beside what was in line."""
    placed = written = 0
    returned: list[str] = []
    for line in trace.read_text().splitlines():
        found = re.search(r" (tx|rx) rpcrdma RDMA_MSG\(.*reads=\[(.*?)\], writes=\[(.*)\], reply=", line)
        if found is None:
            continue
        if found[1] == "tx":
            placed += any(int(position) > 0 for position in re.findall(r"(\d+)/0x", found[2]))
            written += bool(found[3])
        elif found[3]:
            returned.append(found[3])
    filled = sum(any(int(length) > 0 for length in re.findall(r":(\d+)@", chunks)) for chunks in returned)
    check(placed > 0, "no Call had a Read chunk at a Position other than zero")
    check(written > 0 and filled > 0, f"{written} Calls had a Write chunk, {filled} Replies used it")
    return f"{placed} Calls with a Read chunk at their data's Position, {filled} Replies in Write chunks"


def _start(context: Context, port: int, *arguments: str) -> IwarpProcess:
    gateway = context.iwarp("gateway", *arguments, "--stats", str(context.log_directory / "stats.json"))
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    return gateway


def _use(context: Context, transport: str) -> str:
    guest = context.guest
    guest.must("bash -s", 150, stdin=_MAKE_DISK)
    guest.must(f"modprobe -a nfs nfsv4 rpcrdma; mkdir -p {_MOUNT_POINT}; find {_DISK} -type f -delete", 120)
    guest.must(f"mount -t nfs -o {transport},vers=4.2,sec=sys {HOST_ADDRESS}:/disk {_MOUNT_POINT}", 120)
    counts = json.loads(guest.must(f"python3 -B /run/interop/nfs42_io.py {_MOUNT_POINT} {_DISK}", 240))
    guest.must(f"umount {_MOUNT_POINT}", 120)
    (context.log_directory / "operations.json").write_text(json.dumps(counts))
    for name in _MUST_HAPPEN:
        sent, failed = counts[name]
        check(sent > 0 and failed == 0, f"the client sent {sent} {name}, and {failed} failed")
    return ", ".join(f"{counts[name][0]} {name}" for name in _MUST_HAPPEN)


def _check_callback(context: Context, gateway: IwarpProcess) -> None:
    """The large copy ends with a CB_OFFLOAD, and all that came went on."""
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    messages = json.loads((context.log_directory / "stats.json").read_text())["messages"]
    for kind, counts in messages.items():
        check(counts["received"] == counts["forwarded"], f"not all messages '{kind}' were forwarded: {counts}")
    check(messages["backward_call"]["forwarded"] > 0, "no CB_OFFLOAD passed")
