"""`iwarp gateway --device` in the guest, over libibverbs, librdmacm and the kernel's siw: no stack of ours on the wire, in either role."""

from __future__ import annotations

import shlex
import time

from lib.errors import check, check_equal
from lib.guest import HOST_ADDRESS, Guest, Job
from lib.iwarp_tool import Connection, parse_connections, total
from lib.kernel_nfsd import RDMA_PORT
from lib.nfs_files import BULK_BYTES, ODD_SIZES, sha256
from lib.scenario import ONCE, Context, scenario
from scenarios.kernel_mount import use_mount
from scenarios.libnfs import prepare_server

_LOG = "/run/interop/gateway.log"
_MOUNT_POINT = "/mnt/device"
_ODD_BYTES = sum(ODD_SIZES)


@scenario("device-front", "gateway --device siw0 in a guest, before nfs-ganesha: the kernel of another guest mounts vers=4.1,proto=rdma and works there",
          variants=ONCE)
def kernel_client(context: Context) -> None:
    ganesha = context.services.ganesha
    port = context.take_rping_port()
    gateway = _start(context, context.guest, "--rdma-listen", f"0.0.0.0:{port}", "--tcp", f"{HOST_ADDRESS}:{ganesha.nfs_port}")
    context.guest.wait_listening(port, 30, rdma=True)
    client = context.boot_another()
    use_mount(context, "4.1", f"rdma,port={context.guest.forwards[port]}", ganesha, guest=client)
    connections = _ended(context.guest, "client closed")
    counters = total(connections)
    # What this end asked for: reads of the client leave by RDMA Write, what it writes is fetched by RDMA Read.
    check(counters["tx_write_bytes"] >= BULK_BYTES + _ODD_BYTES, f"too little went out by RDMA Write: {counters}")
    check(counters["rx_read_bytes"] >= BULK_BYTES + _ODD_BYTES, f"too little came in by RDMA Read: {counters}")
    check(counters["tx_send_bytes"] < BULK_BYTES // 8, f"too much went out by Send: {counters}")
    _stop(context.guest, gateway)


@scenario("device-back", "gateway --device siw0 in a guest, before the kernel's NFS server of another guest: reads and writes over TCP, vers=4.1",
          variants=ONCE)
def kernel_server(context: Context) -> None:
    nfsd = prepare_server(context)
    tree = context.services.ganesha.root
    client = context.boot_another()
    gateway = _start(context, client, "--tcp-listen", "127.0.0.1:2050", "--rdma", f"{HOST_ADDRESS}:{context.guest.forwards[RDMA_PORT]}")
    client.wait_listening(2050, 30)
    client.must(f"modprobe -a nfs nfsv4; mkdir -p {_MOUNT_POINT} && mount -t nfs -o proto=tcp,port=2050,vers=4.1,sec=sys 127.0.0.1:/ {_MOUNT_POINT}", 60)
    names = ["bulk", *(f"odd-{size}" for size in ODD_SIZES)]
    listed = client.must(f"cd {_MOUNT_POINT} && sha256sum {shlex.join(names)}", 120)
    check_equal("SHA-256 sums of the files read", dict(reversed(line.split()) for line in listed.splitlines()),
                {name: sha256(tree / name) for name in names})
    client.must(f"cp {_MOUNT_POINT}/bulk {_MOUNT_POINT}/device-bulk && sync && umount {_MOUNT_POINT}", 120)
    check_equal("SHA-256 of the file written", context.guest.must("sha256sum /srv/export/device-bulk; rm /srv/export/device-bulk", 60).split()[0],
                sha256(tree / "bulk"))
    connections = _ended(client, "done")
    counters = total(connections)
    check(counters["rx_send"] > 0, f"no message was received: {counters}")
    _stop(client, gateway)


def _start(context: Context, guest: Guest, *arguments: str) -> Job:
    words = [str(context.binary), "--debug", "gateway", "--device", "siw0", "--allow", "127.0.0.0/8,10.0.2.0/24", *arguments]
    return guest.spawn(f"exec {shlex.join(words)} > {_LOG} 2>&1")


def _ended(guest: Guest, end: str) -> list[Connection]:
    """The connections of the gateway, all of which have ended so."""
    deadline = time.monotonic() + 15
    while True:
        log = guest.must(f"cat {_LOG}")
        connections = parse_connections(log)
        if connections and all(c.end is not None for c in connections):
            break
        check(time.monotonic() < deadline, f"connections over siw0 do not end: {log[-1500:]}")
        time.sleep(0.2)
    check_equal("how they ended", {c.end for c in connections}, {end})
    for connection in connections:
        connection.check_negotiated("the gateway", {"device": "siw0"})
    return connections


def _stop(guest: Guest, gateway: Job) -> None:
    guest.must("pkill -TERM -x iwarp")
    check_equal("exit status of the gateway after SIGTERM", gateway.wait(20).status, 0)
