"""rstream over the drop-in verbs libraries on this host, against Debian's own library over the kernel's siw, in both roles."""

from __future__ import annotations

from lib.capture import Traffic
from lib.errors import check_equal
from lib.guest import GUEST_ADDRESS, HOST_ADDRESS
from lib.processes import free_port, wait_listening
from lib.scenario import ONCE, Context, scenario

# Each end sends and verifies, in turn. Longer than the buffers, so that these are granted anew many times.
_STREAM = "rstream -T b -T v -B 16384 -S 50000 -C 20 -I 5"
_TIMEOUT = 60.0


@scenario("rsockets-server", "rstream over Debian's library and siw -> rstream over iwarp's libraries, both ends verified", variants=ONCE)
def kernel_client(context: Context) -> None:
    port = free_port()
    server = context.iwarp("run", "--", *_STREAM.split(), "-p", str(port))
    wait_listening(port, "rstream over iwarp", 15, server.child)
    context.guest.must(f"{_STREAM} -s {HOST_ADDRESS} -p {port}", _TIMEOUT)
    check_equal("exit status of the server over iwarp", server.child.wait_exit(15), 0)
    context.traffic.append(Traffic("rsockets-server", port, 1, {}, crc=True, rpc=False))


@scenario("rsockets-client", "rstream over iwarp's libraries -> rstream over Debian's library and siw, both ends verified", variants=ONCE)
def kernel_server(context: Context) -> None:
    port = context.take_rping_port()
    server = context.guest.spawn(f"{_STREAM} -b {GUEST_ADDRESS} -p {port}")
    context.guest.wait_listening(port, 15, rdma=True)
    client = context.iwarp("run", "--", *_STREAM.split(), "-s", "127.0.0.1", "-p", str(context.guest.forwards[port]))
    check_equal("exit status of the client over iwarp", client.child.wait_exit(_TIMEOUT), 0)
    check_equal("exit status of the server over siw", server.wait(15).status, 0)
    context.traffic.append(Traffic("rsockets-client", port, 1, {}, crc=True, rpc=False))
