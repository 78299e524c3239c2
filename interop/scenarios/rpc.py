"""rpc::Client and rpc::Server of the C++ API over the kernel's siw in a guest (examples/rpc_rnic.cc), against the same over the drop-in verbs
libraries on this host, where it is our stack that speaks: both roles, small Calls and chunks.

What our stack has sent and received is read from its own capture (`iwarp run --trace`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from lib.capture import READ_OCTETS, Traffic
from lib.errors import check, check_equal
from lib.guest import GUEST_ADDRESS, HOST_ADDRESS
from lib.processes import free_port, run_tool, wait_listening
from lib.scenario import ONCE, Context, scenario

_CALLS = 1001               # of the program; the Client asks once more whether it is there
_BULK = 1 << 20             # octets of the last one, there by RDMA Read and back by RDMA Write
_GOES_WELL = "1000 sums make 999000; 1048576 octets came back reversed"
_TIMEOUT = 60.0


@scenario("rpc-device-client", f"rpc::Client over siw0 in the guest -> rpc::Server over iwarp's verbs libraries: {_CALLS} Calls, 1 MiB by chunk both ways",
          variants=ONCE)
def device_calls(context: Context) -> None:
    program, port, trace = _program(context), free_port(), context.log_directory / "ours.pcap"
    server = context.iwarp("run", "--address", "127.0.0.1", "--trace", str(trace), "--", str(program), "iwarp0", "serve", "127.0.0.1", str(port))
    wait_listening(port, "rpc_rnic serve over iwarp", 15, server.child)
    # With the limit of locked memory that users have by default, less than all Calls at a time need.
    said = context.guest.must(f"ulimit -l 8192 && exec /run/host{program} siw0 call {HOST_ADDRESS} {port}", _TIMEOUT)
    check_equal("what the client over siw says", said.strip(), _GOES_WELL)
    check_equal("exit status of the server over iwarp after SIGTERM", server.child.stop(10), 0)
    _check_served(server.child.output_text())
    context.traffic.append(Traffic("rpc-device-client", port, 1, _messages(context, trace, server="ours"), crc=True))


@scenario("rpc-device-server", f"rpc::Client over iwarp's verbs libraries -> rpc::Server over siw0 in the guest: {_CALLS} Calls, 1 MiB by chunk both ways",
          variants=ONCE)
def device_serves(context: Context) -> None:
    program, port, trace = _program(context), context.take_rping_port(), context.log_directory / "ours.pcap"
    server = context.guest.spawn(f"exec /run/host{program} siw0 serve {GUEST_ADDRESS} {port}")
    context.guest.wait_listening(port, 15, rdma=True)
    client = context.iwarp("run", "--address", "127.0.0.1", "--trace", str(trace), "--", str(program), "iwarp0", "call", "127.0.0.1",
                           str(context.guest.forwards[port]))
    check_equal("exit status of the client over iwarp", client.child.wait_exit(_TIMEOUT), 0)
    check_equal("what the client over iwarp says", client.child.output_text().strip(), _GOES_WELL)
    context.guest.must("pkill -TERM -f '[r]pc_rnic siw0 serve'")
    ended = server.wait(20)
    check_equal("exit status of the server over siw after SIGTERM", ended.status, 0)
    _check_served(ended.output)
    context.traffic.append(Traffic("rpc-device-server", port, 1, _messages(context, trace, server="peer"), crc=True))


def _program(context: Context) -> Path:
    program = context.binary.parent / "example_rpc_rnic"
    check(program.exists(), f"no {program}: it is built with the examples, where libibverbs-dev and librdmacm-dev are")
    return program


def _check_served(said: str) -> None:
    served = re.search(r"^(\d+) Calls on (\d+) connections$", said, re.MULTILINE)
    check(served is not None, f"the server says: {said[-500:]}")
    check_equal("Calls served, and connections", served.groups(), (str(_CALLS + 1), "1"))


def _messages(context: Context, trace: Path, server: str) -> dict[tuple[str, str], int]:
    """What our own capture has, as the guest's has to have it."""
    done = run_tool([str(context.binary), "trace", "--json", "--layer", "rdmap", str(trace)], 30)
    check_equal("exit status of iwarp trace", done.returncode, 0)
    pdus = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    sides = {"tx": "ours" if server == "peer" else "peer", "rx": server}     # a trace is as the client sees it
    names = {"Send": "send", "SendInvalidate": "send", "Write": "write", "ReadRequest": "read_request", "ReadResponse": "read"}
    messages: Counter[tuple[str, str]] = Counter({(side, name): 0 for side in sides.values() for name in names.values()})
    for pdu in pdus:
        check(pdu["pdu"] in names, f"{trace} has {pdu}")
        side = sides[pdu["direction"]]
        messages[side, names[pdu["pdu"]]] += 1
        messages[side, READ_OCTETS] += pdu["fields"].get("size", 0) if pdu["pdu"] == "ReadRequest" else 0
    written = sum(pdu["fields"]["length"] for pdu in pdus if pdu["pdu"] == "Write" and sides[pdu["direction"]] == server)
    check_equal("octets that the server fetched, and wrote", (messages[server, READ_OCTETS], written), (_BULK, _BULK))
    check_equal("Sends of the two ends", (messages["ours", "send"], messages["peer", "send"]), (_CALLS + 1, _CALLS + 1))
    return dict(messages)
