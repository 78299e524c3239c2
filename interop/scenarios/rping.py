"""Issue scenario 2a: rping in both directions, data verified by both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from lib.capture import Traffic, messages_of
from lib.errors import check, check_equal
from lib.guest import GUEST_ADDRESS, HOST_ADDRESS
from lib.iwarp_tool import Connection
from lib.processes import free_port, wait_listening
from lib.scenario import Context, scenario

ITERATIONS = 100
SIZES = (64, 4096, 65535)
ADVERTISEMENT_BYTES = 16
_TIMEOUT = 60.0
# -v prints a line per ping, which is what we count.
_KERNEL_FLAGS = f"-C {ITERATIONS} -V -v"


@dataclass(frozen=True)
class Case:
    """One rping run: our policy flags and what must be negotiated with them."""

    size: int
    flags: Sequence[str]
    crc: bool
    rtr: str        # "none" means no peer-to-peer mode
    revision: int = 2

    def expected(self, role: str) -> dict[str, str]:
        return {"role": role, "rev": str(self.revision), "enhanced": str(self.revision - 1), "crc": str(int(self.crc)),
                "p2p": str(int(self.rtr != "none")), "rtr": self.rtr, "ird": "1", "ord": "1"}


def server_cases(context: Context) -> list[Case]:
    """The kernel initiates: it asks for CRC and RTR according to its variant, we follow."""
    # siw offers both RTR kinds; of these we take Read unless the policy leaves only Write.
    rtr = "read" if context.peer_wants_rtr else "none"
    revision = context.peer_revision
    cases = [Case(size, ("--crc", "prefer-off"), context.peer_wants_crc, rtr, revision) for size in SIZES]
    if context.peer_wants_rtr:
        cases.append(Case(4096, ("--crc", "prefer-off", "--rtr", "write"), context.peer_wants_crc, "write"))
    if not context.peer_wants_crc:
        cases.append(Case(4096, ("--crc", "on"), True, rtr, revision))
    return cases


def client_cases(context: Context) -> list[Case]:
    """We initiate: siw echoes our CRC flag and, asked for RTR, takes Write if it was offered."""
    crc = context.peer_wants_crc
    crc_flags = ("--crc", "on" if crc else "prefer-off")
    if not context.peer_wants_rtr:
        # The profile keeps to A=0 by itself.
        cases = [Case(size, (*crc_flags, "--profile", "linux-siw"), crc, "none") for size in SIZES]
    else:
        cases = [Case(size, (*crc_flags, "--p2p", "--rtr", "write,read"), crc, "write") for size in SIZES]
        cases.append(Case(4096, (*crc_flags, "--p2p", "--rtr", "read"), crc, "read"))
    if not crc:
        cases.append(Case(4096, (), True, "write"))     # the defaults
    return cases


@scenario("rping-server", "kernel rping client -> iwarp rping -s: 100 iterations of 64, 4096, 65535 bytes, verified",
          revision_1=True)
def kernel_client_to_ours(context: Context) -> None:
    for case in server_cases(context):
        kernel_pings(context, case)


@scenario("rping-client", "iwarp rping -c -> kernel rping server: 100 iterations of 64, 4096, 65535 bytes, verified")
def ours_to_kernel_server(context: Context) -> None:
    for case in client_cases(context):
        pings_kernel(context, case)


# The options of siw's source: CRC off, and peers that want it are refused. What iwarp does by default is refused, so the
# user has to be told; with prefer-off both agree.
@scenario("crc-strict", "siw that refuses CRC: iwarp says so; with --crc prefer-off rping both ways", variants=("strict",))
def crc_refused(context: Context) -> None:
    agreed = Case(4096, ("--crc", "prefer-off", "--profile", "linux-siw"), False, "none")
    port = free_port()
    server = context.iwarp("rping", "-s", "-a", "127.0.0.1", "-p", str(port), "--crc", "on")
    wait_listening(port, "iwarp rping -s", 10, server.child)
    check_equal("pings of the kernel's client with --crc on", _kernel_client(context, port, 4096), "0")
    server.child.wait_exit(15)
    check("established" in server.child.log_text(), "the kernel's client did not come as far as the Reply of iwarp")
    kernel_pings(context, agreed)
    pings_kernel(context, agreed, refused=("--crc", "on", "--profile", "linux-siw"))


def kernel_pings(context: Context, case: Case) -> None:
    """The kernel's client against `iwarp rping -s`."""
    port = free_port()
    # As with rdma-core's server, -C there means nothing: the client decides.
    server = context.iwarp("rping", "-s", "-a", "127.0.0.1", "-p", str(port), "-S", str(case.size), "-C", "1", "-V", *case.flags)
    wait_listening(port, "iwarp rping -s", 10, server.child)
    check_equal(f"pings that the kernel's client verified at {case.size} bytes", _kernel_client(context, port, case.size), str(ITERATIONS))
    check_equal("exit status of iwarp rping -s", server.child.wait_exit(15), 0)
    connection = _only(server.closed_connections())
    connection.check_negotiated("our responder", case.expected("responder"))
    _check_counters(connection, case.size, we_are_server=True)
    context.traffic.append(Traffic("rping-server", port, 1, messages_of([connection]), case.crc))


def pings_kernel(context: Context, case: Case, refused: Sequence[str] = ()) -> None:
    """`iwarp rping -c` against the kernel's server; with the flags `refused` before, which that server rejects."""
    port = context.take_rping_port()
    server = context.guest.spawn(counted(f"rping -s -a {GUEST_ADDRESS} -p {port} {_KERNEL_FLAGS} -S {case.size}"))
    context.guest.wait_listening(port, 15, rdma=True)
    words = ("rping", "-c", "-a", "127.0.0.1", "-p", str(context.guest.forwards[port]), "-S", str(case.size), "-C", str(ITERATIONS), "-V")
    if refused:
        client = context.iwarp(*words, *refused)
        check_equal(f"exit status of iwarp rping -c {' '.join(refused)}", client.child.wait_exit(_TIMEOUT), 1)
        check("rejected" in client.child.log_text(), "the log of iwarp does not say that the server rejected it")
    client = context.iwarp(*words, *case.flags)
    check_equal("exit status of iwarp rping -c", client.child.wait_exit(_TIMEOUT), 0)
    served = server.wait(15)
    check_equal(f"pings that the kernel's server took at {case.size} bytes", served.output.split()[-1:], [str(ITERATIONS)])
    connection = _only(client.closed_connections())
    connection.check_negotiated("our initiator", case.expected("initiator"))
    _check_counters(connection, case.size, we_are_server=False)
    context.traffic.append(Traffic("rping-client", port, 1, messages_of([connection]), case.crc, hasty=int(bool(refused))))


def _kernel_client(context: Context, port: int, size: int) -> str:
    """How many pings it counted."""
    return context.guest.must(counted(f"rping -c -a {HOST_ADDRESS} -p {port} {_KERNEL_FLAGS} -S {size}"), _TIMEOUT).split()[-1]


def counted(command: str) -> str:
    """A kernel rping whose last word of output counts its pings: its exit status is 0 even when it gave up early."""
    return f"{command} >/tmp/rping.out 2>&1; status=$?; cut -c1-200 /tmp/rping.out | grep -v 'ping data:'; " \
           f"echo \"status $status\"; grep -ac 'ping data:' /tmp/rping.out || true"


def _only(connections: list[Connection]) -> Connection:
    check(len(connections) == 1, f"expected one connection in the log, found {len(connections)}")
    return connections[0]


def _check_counters(connection: Connection, size: int, *, we_are_server: bool) -> None:
    """Each ping: the server Reads `size` bytes and Writes them back; two advertisements, two go-aheads."""
    bulk, small = ITERATIONS * size, 2 * ITERATIONS * ADVERTISEMENT_BYTES
    expected = {"tx_send_bytes": small, "rx_send_bytes": small, "tx_send": 2 * ITERATIONS, "rx_send": 2 * ITERATIONS,
                "rx_read_bytes": bulk if we_are_server else 0, "tx_read_bytes": 0 if we_are_server else bulk,
                "tx_write_bytes": bulk if we_are_server else 0, "rx_write_bytes": 0 if we_are_server else bulk}
    wrong = [f"{name}={connection.counters.get(name, '(absent)')} instead of {value}"
             for name, value in expected.items() if connection.counters.get(name) != value]
    check(not wrong, f"counters after {ITERATIONS} pings of {size} bytes: {', '.join(wrong)}")
