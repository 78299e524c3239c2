"""Many short TCP clients, through our gateway, to the kernel's NFS server over siw: it takes over its sockets late.

siw installs what notices arriving octets only after it has sent the MPA Reply. What came in between lies unread until more octets
come, and a connection with A=1 that ends unread makes the guest BUG().
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from lib.capture import Traffic, messages_of
from lib.errors import ScenarioFailure, check, check_equal
from lib.iwarp_tool import total
from lib.kernel_nfsd import RDMA_PORT
from lib.processes import free_port, wait_listening
from lib.scenario import Context, scenario

_CLIENTS = 200          # half of them reset their connection in the end
_HASTY = 20             # reset it within a moment, without a Call: the gateway may be connecting, or have just connected
_CALLS = 3              # of each
_AFTER = 8              # come when it is over
_AT_A_TIME = 4
_PATIENCE = 8.0         # seconds for an answer
_NULL = struct.pack(">7I", 0, 2, 100003, 3, 0, 0, 0) + bytes(12)   # of NFSv3, behind the xid
_RST = struct.pack("ii", 1, 0)
_BROKEN = re.compile(r"^.*(?:kernel BUG|BUG:|Oops|soft lockup|general protection|self-detected stall).*$", re.M)


@scenario("storm", "200 short TCP clients, half of which reset -> gateway -> kernel nfsd over siw, A=0 and A=1: every Call answered",
          variants=("default", "crc"))
def storm(context: Context) -> str:
    return "; ".join(_storm(context, peer_to_peer) for peer_to_peer in (False, True))


def _storm(context: Context, peer_to_peer: bool) -> str:
    port, nfsd, crc = free_port(), context.boot.nfsd, context.peer_wants_crc
    gateway = context.iwarp("gateway", "--tcp-listen", f"127.0.0.1:{port}", "--rdma", f"127.0.0.1:{nfsd.rdma_port}",
                            "--insecure-ports", "--crc", "on" if crc else "prefer-off", *(["--p2p"] if peer_to_peer else []))
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    start = time.monotonic()
    with ThreadPoolExecutor(_AT_A_TIME) as clients:
        fates = Counter(clients.map(lambda number: _client(port, number), range(_CLIENTS + _HASTY)))
    seconds = time.monotonic() - start
    which = f"with A={int(peer_to_peer)}"
    broken = _BROKEN.search(context.guest.console.read_text(errors="replace"))
    check(broken is None, f"{which}, {dict(fates)}, the guest said: {broken.group(0).strip() if broken else ''}")
    check_equal(f"fates of the clients {which}", dict(fates), {"left": _HASTY, "answered": _CLIENTS})
    for number in range(_AFTER):
        check_equal(f"what became of client {number} after the storm {which}", _client(port, number), "answered")
    connections = gateway.closed_connections(_CLIENTS + _AFTER)
    for connection in connections:
        connection.check_negotiated("our gateway", {"role": "initiator", "rev": "2", "crc": str(int(crc)), "p2p": str(int(peer_to_peer))})
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    context.traffic.append(Traffic("storm", RDMA_PORT, len(connections), messages_of(connections), crc, _HASTY))
    return f"A={int(peer_to_peer)}: {seconds:.0f} s, {total(connections).get('tx_wake', 0)} wakes"


def _client(port: int, number: int) -> str:
    """What became of it: "answered", or which Call was not; "left" of those that have none."""
    with socket.create_connection(("127.0.0.1", port), _PATIENCE) as tcp:
        tcp.settimeout(_PATIENCE)
        if number % 2:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
        if number >= _CLIENTS:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
            time.sleep((number - _CLIENTS) * 0.004)
            return "left"
        for call in range(_CALLS):
            xid = number * _CALLS + call + 1
            message = struct.pack(">I", xid) + _NULL
            try:
                tcp.sendall(struct.pack(">I", 0x80000000 | len(message)) + message)
                reply = _record(tcp)
            except (OSError, EOFError):
                return f"call {call + 1} unanswered"
            # Accepted, no verifier, success.
            if reply != struct.pack(">6I", xid, 1, 0, 0, 0, 0):
                raise ScenarioFailure(f"client {number} got {reply.hex()}")
        return "answered"


def _record(tcp: socket.socket) -> bytes:
    (mark,) = struct.unpack(">I", _exactly(tcp, 4))
    return _exactly(tcp, mark & 0x7FFFFFFF)


def _exactly(tcp: socket.socket, octets: int) -> bytes:
    got = b""
    while len(got) < octets:
        more = tcp.recv(octets - len(got))
        if not more:
            raise EOFError
        got += more
    return got
