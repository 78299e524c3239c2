"""Ours against siw in the same guest, on demand: ib_write_bw and ib_read_bw over siw, iwarp perf over sockets, in turn.

Both ends run in the guest and reach each other by its own address, so both stacks are under the same emulation and over the same TCP.
The CRC follows the variant: default runs without, crc with.
"""

from __future__ import annotations

import json
import re
import statistics

from lib.errors import check
from lib.guest import GUEST_ADDRESS
from lib.scenario import Context, scenario

_SIZES = (65536, 1048576)
_SECONDS = 2
_DEPTH = 16  # operations outstanding, at both stacks
_ENOUGH_BYTES = 1 << 30
_LOOPBACK_RATE = f"""
import time
def octets():
    return int(open("/sys/class/net/lo/statistics/tx_bytes").read())
start = octets()
while octets() - start < 16 << 20:
    time.sleep(0.02)
start, begin = octets(), time.monotonic()
time.sleep({_SECONDS})
print((octets() - start) / (time.monotonic() - begin))
"""
_ROUNDS = 5
_TIMEOUT = 90.0


@scenario("speed", "iwarp perf against perftest over siw in the same guest: RDMA Write and Read, median of 5 turns each",
          on_demand=True)
def speed(context: Context) -> str:
    ports = iter(range(18515, 18600))
    notes = []
    for operation in ("write", "read"):
        for size in _SIZES:
            pairs = [(_ours(context, operation, size), _siw(context, operation, size, next(ports))) for _ in range(_ROUNDS)]
            ours, siw = (statistics.median(side) for side in zip(*pairs))
            ratios = [a / b for a, b in pairs]
            notes.append(f"{operation} {size // 1024} KiB {ours / 1e6:.0f} : {siw / 1e6:.0f} MB/s, "
                         f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
            check(statistics.median(ratios) > 1, f"siw is faster: {notes[-1]}")
    return "; ".join(notes)


def _ours(context: Context, operation: str, size: int) -> float:
    """Octets per second."""
    crc = "on" if context.peer_wants_crc else "off"
    report = "/run/perf.json"
    context.guest.must(f"/run/host{context.binary} perf run {operation}_bw --size {size} --depth {_DEPTH} --crc {crc} "
                       f"--seconds {_SECONDS} --pairs 1 --baseline quick --json {report} >/dev/null", _TIMEOUT)
    return float(json.loads(context.guest.must(f"cat {report}"))["rows"][0]["iwarp"]["value"])


def _siw(context: Context, operation: str, size: int, port: int) -> float:
    """The same, by the clock: perftest counts processor cycles, which mean nothing under emulation. Framing counts as well."""
    command = f"ib_{operation}_bw -R -F -p {port} -s {size} -t {_DEPTH} -n {_ENOUGH_BYTES // size}"
    server = context.guest.spawn(command)
    context.guest.wait_listening(port, 15, rdma=True)
    client = context.guest.spawn(f"{command} {GUEST_ADDRESS}")
    rate = context.guest.must(f"python3 -B -c '{_LOOPBACK_RATE}'", _TIMEOUT)
    output = client.kill()
    # Its row of results comes at the end.
    check(re.search(rf"^ *{size} +\d+ ", output, re.M) is None, f"{command} had ended within the sample")
    server.kill()
    return float(rate)
