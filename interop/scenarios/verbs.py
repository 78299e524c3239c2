"""Debian's rping, unmodified, over the drop-in verbs libraries on this host, against the kernel's siw in both roles.

What the libraries have sent is read from their own capture (`iwarp run --trace`).
"""

from __future__ import annotations

import json
from pathlib import Path

from lib.capture import READ_OCTETS, Traffic
from lib.errors import check, check_equal
from lib.guest import GUEST_ADDRESS, HOST_ADDRESS
from lib.processes import free_port, run_tool, wait_listening
from lib.scenario import ONCE, Context, scenario
from scenarios.rping import ITERATIONS, counted

_SIZE = 4096
_OPTIONS = f"-C {ITERATIONS} -V -v -S {_SIZE}"
_TIMEOUT = 60.0


@scenario("verbs-server", f"kernel rping client -> rping -s over iwarp's verbs libraries: {ITERATIONS} iterations, verified", variants=ONCE)
def kernel_client(context: Context) -> None:
    port = free_port()
    trace = context.log_directory / "ours.pcap"
    server = context.iwarp("run", "--trace", str(trace), "--", "rping", "-s", "-a", "127.0.0.1", "-p", str(port), *_OPTIONS.split())
    wait_listening(port, "rping -s over iwarp", 15, server.child)
    pinged = context.guest.must(counted(f"rping -c -a {HOST_ADDRESS} -p {port} {_OPTIONS}"), _TIMEOUT).split()[-1]
    check_equal("pings that the kernel's client verified", pinged, str(ITERATIONS))
    check_equal("exit status of rping -s over iwarp", server.child.wait_exit(15), 0)
    check_equal("empty Writes of the libraries", _empty_writes(context, trace), 0)
    context.traffic.append(Traffic("verbs-server", port, 1, _messages(server="ours"), crc=True))


@scenario("verbs-client", f"rping -c over iwarp's verbs libraries -> kernel rping server: {ITERATIONS} iterations, verified", variants=ONCE)
def kernel_server(context: Context) -> str:
    port = context.take_rping_port()
    server = context.guest.spawn(counted(f"rping -s -a {GUEST_ADDRESS} -p {port} {_OPTIONS}"))
    context.guest.wait_listening(port, 15, rdma=True)
    trace = context.log_directory / "ours.pcap"
    client = context.iwarp("run", "--trace", str(trace), "--", "rping", "-c", "-a", "127.0.0.1", "-p", str(context.guest.forwards[port]), *_OPTIONS.split())
    check_equal("exit status of rping -c over iwarp", client.child.wait_exit(_TIMEOUT), 0)
    check_equal("pings that the kernel's server took", server.wait(15).output.split()[-1:], [str(ITERATIONS)])
    # The RTR, and those that wake a siw that is slow to take over its socket, three at most.
    empty = _empty_writes(context, trace)
    check(1 <= empty <= 4, f"{empty} empty Writes of the libraries, expected 1 to 4")
    messages = _messages(server="peer")
    messages["ours", "write"] += empty
    context.traffic.append(Traffic("verbs-client", port, 1, messages, crc=True))
    return f"{empty - 1} wakes"


def _empty_writes(context: Context, trace: Path) -> int:
    """How many the libraries have sent, by their own capture."""
    done = run_tool([str(context.binary), "trace", "--json", "--layer", "rdmap", str(trace)], 30)
    check_equal("exit status of iwarp trace", done.returncode, 0)
    pdus = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    check(bool(pdus), f"{trace} has no messages")
    return sum(pdu["direction"] == "tx" and pdu["pdu"] == "Write" and pdu["fields"]["length"] == 0 for pdu in pdus)


def _messages(server: str) -> dict[tuple[str, str], int]:
    """What ITERATIONS pings are on the wire: the server Reads the data and Writes it back; two advertisements, two go-aheads each."""
    client = "peer" if server == "ours" else "ours"
    return {(server, "send"): 2 * ITERATIONS, (client, "send"): 2 * ITERATIONS,
            (server, "read_request"): ITERATIONS, (client, "read"): ITERATIONS, (server, READ_OCTETS): ITERATIONS * _SIZE,
            (server, "write"): ITERATIONS, (client, "write"): 0, (client, "read_request"): 0, (server, "read"): 0,
            (client, READ_OCTETS): 0}
