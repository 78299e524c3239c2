"""Debian's rping, unmodified, over the drop-in verbs libraries on this host, against the kernel's siw in both roles."""

from __future__ import annotations

from lib.capture import READ_OCTETS, Traffic
from lib.errors import check_equal
from lib.guest import GUEST_ADDRESS, HOST_ADDRESS
from lib.processes import free_port, wait_listening
from lib.scenario import ONCE, Context, scenario
from scenarios.rping import ITERATIONS, counted

_SIZE = 4096
_OPTIONS = f"-C {ITERATIONS} -V -v -S {_SIZE}"
_TIMEOUT = 60.0


@scenario("verbs-server", f"kernel rping client -> rping -s over iwarp's verbs libraries: {ITERATIONS} iterations, verified", variants=ONCE)
def kernel_client(context: Context) -> None:
    port = free_port()
    server = context.iwarp("run", "--", "rping", "-s", "-a", "127.0.0.1", "-p", str(port), *_OPTIONS.split())
    wait_listening(port, "rping -s over iwarp", 15, server.child)
    pinged = context.guest.must(counted(f"rping -c -a {HOST_ADDRESS} -p {port} {_OPTIONS}"), _TIMEOUT).split()[-1]
    check_equal("pings that the kernel's client verified", pinged, str(ITERATIONS))
    check_equal("exit status of rping -s over iwarp", server.child.wait_exit(15), 0)
    context.traffic.append(Traffic("verbs-server", port, 1, _messages(server="ours"), crc=True, wakes=20))


@scenario("verbs-client", f"rping -c over iwarp's verbs libraries -> kernel rping server: {ITERATIONS} iterations, verified", variants=ONCE)
def kernel_server(context: Context) -> None:
    port = context.take_rping_port()
    server = context.guest.spawn(counted(f"rping -s -a {GUEST_ADDRESS} -p {port} {_OPTIONS}"))
    context.guest.wait_listening(port, 15, rdma=True)
    client = context.iwarp("run", "--", "rping", "-c", "-a", "127.0.0.1", "-p", str(context.guest.forwards[port]), *_OPTIONS.split())
    check_equal("exit status of rping -c over iwarp", client.child.wait_exit(_TIMEOUT), 0)
    check_equal("pings that the kernel's server took", server.wait(15).output.split()[-1:], [str(ITERATIONS)])
    messages = _messages(server="peer")
    messages["ours", "write"] += 1      # the RTR
    context.traffic.append(Traffic("verbs-client", port, 1, messages, crc=True, wakes=20))


def _messages(server: str) -> dict[tuple[str, str], int]:
    """What ITERATIONS pings are on the wire: the server Reads the data and Writes it back; two advertisements, two go-aheads each."""
    client = "peer" if server == "ours" else "ours"
    return {(server, "send"): 2 * ITERATIONS, (client, "send"): 2 * ITERATIONS,
            (server, "read_request"): ITERATIONS, (client, "read"): ITERATIONS, (server, READ_OCTETS): ITERATIONS * _SIZE,
            (server, "write"): ITERATIONS, (client, "write"): 0, (client, "read_request"): 0, (server, "read"): 0,
            (client, READ_OCTETS): 0}
