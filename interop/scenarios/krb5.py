"""Kerberos through our gateway, both ways round; KDC, client and server are the guest's. With integrity (krb5i) nothing of a Call
or Reply is looked into or reduced: all that is long goes by Position-Zero Read chunk and Reply chunk. Where Kerberos only says
who calls (krb5), data have chunks of their own."""

from __future__ import annotations

import re
from pathlib import Path

from lib.capture import Traffic, messages_of
from lib.errors import check, check_equal
from lib.kerberos import LOG, SERVER_NAME, start_kerberos
from lib.kernel_nfsd import EXPORT, RDMA_PORT, TCP_PORT
from lib.processes import free_port, wait_listening
from lib.scenario import ONCE, Context, scenario
from lib.tcp_forward import TcpForward
from scenarios.nfs42 import check_chunks

_MOUNT_POINT = "/mnt/krb5"
_SECRET = f"{EXPORT}/secret"
_BYTES = (3 << 20) + 1
# A mount reads what another one has written.
_USE = f"""
set -e
modprobe -a nfs nfsv4 rpcrdma
mkdir -p {_MOUNT_POINT}
trap 'test $? = 0 || tail -n 40 {LOG}' EXIT
mount -t nfs -o OPTIONS {SERVER_NAME}:/ {_MOUNT_POINT}
cp {EXPORT}/seed {_MOUNT_POINT}/secret/NAME
umount {_MOUNT_POINT}
mount -t nfs -o OPTIONS {SERVER_NAME}:/ {_MOUNT_POINT}
sha256sum < {_MOUNT_POINT}/secret/NAME
ls {_MOUNT_POINT}/secret
umount {_MOUNT_POINT}
"""


@scenario("krb5", "the kernel mounts v4.1 with krb5i through the gateway, over RDMA to knfsd over TCP and the other way round; then with krb5",
          variants=ONCE)
def krb5(context: Context) -> str:
    nfsd, guest = context.boot.nfsd, context.guest
    start_kerberos(guest)
    guest.must(f"mkdir -p {_SECRET} && chmod 777 {_SECRET} && head -c {_BYTES} /dev/urandom > {EXPORT}/seed && "
               f"exportfs -o rw,fsid=0,sec=sys:krb5:krb5i,insecure,no_root_squash,no_subtree_check,sync '*:{EXPORT}'", 120)
    port = free_port()
    # The client's rpc.gssd makes its contexts over TCP with port 2049 of the same address (RFC 8166 s8.2.2.1).
    with TcpForward(TCP_PORT, nfsd.tcp_port):
        trace = _use(context, port, port, f"rdma,port={port},vers=4.1,sec=krb5i", "front", "--rdma-listen", f"127.0.0.1:{port}",
                     "--tcp", f"127.0.0.1:{nfsd.tcp_port}", "--allow", "127.0.0.0/8")
    notes = [_check_opaque(trace)]
    for flavor in ("krb5i", "krb5"):
        port = free_port()
        trace = _use(context, port, RDMA_PORT, f"proto=tcp,port={port},vers=4.1,sec={flavor}", f"back-{flavor}",
                     "--tcp-listen", f"127.0.0.1:{port}", "--rdma", f"127.0.0.1:{nfsd.rdma_port}", "--insecure-ports", "--no-p2p")
        notes.append(_check_opaque(trace) if flavor == "krb5i" else check_chunks(trace))
    return "; ".join(notes)


def _use(context: Context, port: int, rdma_port: int, options: str, name: str, *arguments: str) -> Path:
    """Write, and read, through a gateway; gives its trace."""
    trace = context.log_directory / f"trace-{name}.txt"
    gateway = context.iwarp("gateway", *arguments, "--crc", "prefer-off", "--trace", str(trace))
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    seen = context.guest.must("bash -s", 180, stdin=_USE.replace("OPTIONS", options).replace("NAME", name)).split()
    seed, written = context.guest.must(f"sha256sum {EXPORT}/seed {_SECRET}/{name} | cut -d' ' -f1", 120).split()
    check_equal(f"SHA-256 of {name}, as the server has it and as the client reads it", [written, seen[0]], [seed, seed])
    check(name in seen, f"{name} is not listed: {seen}")
    connections = gateway.closed_connections()
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    context.traffic.append(Traffic(f"krb5-{name}", rdma_port, len(connections), messages_of(connections), False))
    return trace


def _check_opaque(trace: Path) -> str:
    """Under integrity no octet has a chunk of its own."""
    text = trace.read_text()
    protected = len(re.findall(r" rpc Call\(.*cred=RPCSEC_GSS", text))
    check(protected > 0, "no Call was protected")
    placed = [position for reads in re.findall(r"reads=\[(.*?)\], writes", text) for position in re.findall(r"(\d+)/0x", reads)]
    check("0" in placed and set(placed) == {"0"}, f"Read chunks had the Positions {sorted(set(placed))}")
    check(not re.search(r"writes=\[\[", text), "there was a Write chunk")
    check("reply=[" in text, "there was no Reply chunk")
    return f"{protected} protected Calls, {len(placed)} Read segments, all of Position zero"
