"""The backward direction (RFC 8167) with the kernel at both ends: its NFS server recalls delegations from its NFS client,
once with the client, once with the server on the RDMA side of our gateway. Both run in the guest, the gateway between them."""

from __future__ import annotations

import json
from typing import Any

from lib.capture import Traffic, messages_of
from lib.errors import check, check_equal
from lib.guest import HOST_ADDRESS
from lib.iwarp_tool import IwarpProcess
from lib.kernel_nfsd import EXPORT, RDMA_PORT
from lib.processes import free_port, wait_listening
from lib.scenario import Context, scenario
from scenarios.kernel_mount import check_negotiated as check_client_negotiated
from scenarios.libnfs import check_negotiated as check_server_negotiated

_MOUNT_POINT = "/mnt/callback"
_FILES = 5
# A recall that nobody answers ends only when the server revokes the delegation, after its lease time of 90 s.
_PROMPT_SECONDS = 30.0


@scenario("callback-front", "knfsd over TCP recalls delegations from a client that mounts v4.1 over RDMA through the gateway")
def recall_from_rdma_client(context: Context) -> None:
    nfsd = context.boot.nfsd
    port = free_port()
    gateway = _start(context, port, "--rdma-listen", f"127.0.0.1:{port}", "--tcp", f"127.0.0.1:{nfsd.tcp_port}",
                     "--allow", "127.0.0.0/8", "--crc", "prefer-off")
    _recall(context, f"rdma,port={port}")
    connections = gateway.closed_connections()
    check_equal("how the connections of the mount ended", [c.end for c in connections], ["client closed"])
    check_client_negotiated(context, connections[0])
    _check_counters(context, gateway)
    context.traffic.append(Traffic("callback-front", port, 1, messages_of(connections), context.peer_wants_crc))


@scenario("callback-back", "knfsd over siw recalls delegations from a client that mounts v4.1 over TCP through the gateway")
def recall_from_tcp_client(context: Context) -> None:
    nfsd = context.boot.nfsd
    port = free_port()
    crc, rtr = context.peer_wants_crc, context.peer_wants_rtr
    # The client's reserved port does not survive QEMU's user network: the gateway sees a port of this host.
    gateway = _start(context, port, "--tcp-listen", f"127.0.0.1:{port}", "--rdma", f"127.0.0.1:{nfsd.rdma_port}", "--insecure-ports",
                     "--crc", "on" if crc else "prefer-off", "--p2p" if rtr else "--no-p2p")
    _recall(context, f"proto=tcp,port={port}")
    connections = gateway.closed_connections()
    # Our side ends it: orderly, or as the client's TCP connection ended.
    check(len(connections) == 1 and connections[0].end in ("done", "aborted"),
          f"the connections to the server ended: {[c.end for c in connections]}")
    check_server_negotiated(connections[0], crc, rtr)
    _check_counters(context, gateway)
    context.traffic.append(Traffic("callback-back", RDMA_PORT, 1, messages_of(connections), crc))


def _start(context: Context, port: int, *arguments: str) -> IwarpProcess:
    gateway = context.iwarp("gateway", *arguments, "--stats", str(context.log_directory / "stats.json"))
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    return gateway


def _recall(context: Context, transport: str) -> None:
    """Mount, have the delegations recalled, unmount; what the kernel itself says about it."""
    guest = context.guest
    guest.must(f"modprobe -a nfs nfsv4 rpcrdma; mkdir -p {_MOUNT_POINT}", 60)
    guest.must(f"mount -t nfs -o {transport},vers=4.1,sec=sys {HOST_ADDRESS}:/ {_MOUNT_POINT}", 60)
    report: dict[str, Any] = json.loads(
        guest.must(f"python3 -B /run/interop/recall.py {_MOUNT_POINT} {EXPORT} {_FILES}", 150))
    guest.must(f"umount {_MOUNT_POINT}", 60)
    (context.log_directory / "report.json").write_text(json.dumps(report, indent=1))
    check_equal("delegations given", report["given"], _FILES)
    check_equal("delegations left after the recall", report["left"], 0)
    check_equal("state of the back channel", report["callback_states"], ["UP"])
    check_equal("DELEGRETURNs of the client", report["delegreturns"], _FILES)
    check(report["longest_wait"] < _PROMPT_SECONDS, f"a recall took {report['longest_wait']} s")


def _check_counters(context: Context, gateway: IwarpProcess) -> None:
    """Every CB_RECALL and its answer passed through us, and nothing was dropped in either direction."""
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    stats = json.loads((context.log_directory / "stats.json").read_text())
    messages = stats["messages"]
    for kind, counts in messages.items():
        check(counts["received"] == counts["forwarded"], f"not all messages '{kind}' were forwarded: {counts}")
    check(messages["backward_call"]["forwarded"] >= _FILES, f"too few backward Calls: {messages['backward_call']}")
    check_equal("backward Replies", messages["backward_reply"]["forwarded"], messages["backward_call"]["forwarded"])
    check_equal("connections of the gateway", stats["connections"]["opened"], 1)
