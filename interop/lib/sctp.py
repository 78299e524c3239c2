"""DDP over SCTP: sctp_exchange on the host, sctp_peer.py on the guest's SCTP, a bad network between them, and their packets.

sctp_exchange is tests/sctp_cm/exchange_peer.cc: usrsctp in UDP, as nobody and without capabilities when this runs as root.
"""

from __future__ import annotations

import json
import os
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from lib.errors import NotAvailable, ScenarioFailure, check, check_equal
from lib.guest import HOST_ADDRESS, SCTP_UDP_PORT, Guest, Job
from lib.processes import Child, Children, run_tool

_LUA = Path(__file__).resolve().parents[2] / "tools" / "wireshark" / "ddp_sctp.lua"
_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
_PCAP_HEAD, _PACKET_HEAD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
_TIMEOUT = 120.0
_TRACE_NAMES = {"Send": "send", "Write": "write", "ReadRequest": "read_request", "ReadResponse": "read_response",
                "Terminate": "terminate"}
_IFB = "ifb0"
_NETEM = "netem delay 4ms 2ms loss 1%"      # the delays differ, so packets overtake each other


def start_ours(binary: Path, children: Children, log: Path, arguments: Sequence[str]) -> Child:
    """sctp_exchange, which stands beside the command `iwarp`."""
    return children.start("sctp_exchange", as_nobody([str(_program(binary)), *arguments]), log)


def start_rping(binary: Path, children: Children, log: Path, arguments: Sequence[str]) -> Child:
    """`iwarp rping` over SCTP, likewise."""
    _program(binary)
    return children.start("iwarp rping", as_nobody([str(binary), "--debug", "rping", "--llp", "sctp", *arguments]), log)


def _program(binary: Path) -> Path:
    program = binary.parent / "sctp_exchange"
    if not program.exists():
        raise NotAvailable(f"{os.path.relpath(program)} was not built: libusrsctp-dev is not installed")
    return program


def as_nobody(argv: Sequence[str]) -> list[str]:
    """The command, without privileges also where this process has them."""
    return [*(_NOBODY if os.geteuid() == 0 else ()), *argv]


def prepare(guest: Guest) -> None:
    """SCTP of the guest's kernel, in UDP. May be called again."""
    guest.must(f"modprobe sctp && sysctl -qw net.sctp.udp_port={SCTP_UDP_PORT}", 60)


def start_peer(guest: Guest, arguments: Sequence[str]) -> Job:
    return guest.spawn(f"python3 -B /run/interop/sctp_peer.py {' '.join(arguments)}")


def wait_peer_listens(guest: Guest, port: int) -> None:
    done = guest.run(f"until awk '$6 == {port} {{ found = 1 }} END {{ exit !found }}' /proc/net/sctp/eps; do sleep 0.1; done", 20)
    check_equal(f"status of waiting for SCTP port {port} of the guest", done.status, 0)


def report_of(job: Job, timeout: float) -> dict[str, Any]:
    """What sctp_peer.py said at its end."""
    done = job.wait(timeout)
    if done.status != 0:
        raise ScenarioFailure(f"sctp_peer.py ended with status {done.status}: {done.output[-1000:].strip()}")
    return json.loads(done.output.splitlines()[-1])


class BadNetwork:
    """1 % of the packets of either direction are lost, and the others overtake each other: netem in the guest, on what it sends and on
    what it receives."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    def __enter__(self) -> "BadNetwork":
        self._guest.must(f"modprobe -a sch_netem sch_ingress cls_matchall act_mirred ifb && (ip link show {_IFB} || ip link add {_IFB} type ifb) && ip link set {_IFB} up && "
                         f"tc qdisc add dev eth0 root {_NETEM} && tc qdisc add dev {_IFB} root {_NETEM} && "
                         "tc qdisc add dev eth0 handle ffff: ingress && "
                         f"tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev {_IFB}", 60)
        return self

    def __exit__(self, *_: object) -> None:
        self._guest.run(f"tc qdisc del dev eth0 root; tc qdisc del dev eth0 ingress; tc qdisc del dev {_IFB} root")

    def lost(self) -> list[int]:
        """Packets lost so far, of those that the guest has sent and of those that it should have received."""
        found = []
        for device in ("eth0", _IFB):
            words = self._guest.must(f"tc -s qdisc show dev {device} root").replace(",", " ").split()
            found.append(int(words[words.index("(dropped") + 1]))
        return found


def cut(capture: Path, start: int, target: Path, port: int) -> int:
    """Copies what has come to a capture since it had `start` octets, and goes to or from that port of SCTP, in UDP, to a capture of its
    own. Returns how many packets these are."""
    count = 0
    with open(capture, "rb") as source, open(target, "wb") as out:
        out.write(source.read(_PCAP_HEAD.size))
        source.seek(max(start, _PCAP_HEAD.size))
        for head, packet in _packets(source):
            if _is_of(packet, port):
                out.write(head + packet)
                count += 1
    return count


def _packets(source: Any) -> Iterator[tuple[bytes, bytes]]:
    while len(head := source.read(_PACKET_HEAD.size)) == _PACKET_HEAD.size:
        size = _PACKET_HEAD.unpack(head)[2]
        packet = source.read(size)
        if len(packet) == size:     # the last one may be about to be written
            yield head, packet


def _is_of(packet: bytes, port: int) -> bool:
    if packet[12:14] != b"\x08\x00" or packet[23:24] != b"\x11":
        return False
    udp = packet[14 + 4 * (packet[14] & 15):]
    return len(udp) >= 12 and SCTP_UDP_PORT in struct.unpack_from(">HH", udp) and port in struct.unpack_from(">HH", udp, 8)


@dataclass(frozen=True)
class Wanted:
    """What a capture must hold: messages by (side, operation), side "ours" or "peer", and all messages with a DDP-SSN by side."""

    terminates: int
    messages: Mapping[tuple[str, str], int]
    numbered: Mapping[str, int]


def wanted(report: Mapping[str, Any]) -> Wanted:
    """By the report of sctp_peer.py."""
    messages: Counter[tuple[str, str]] = Counter()
    numbered: Counter[str] = Counter()
    for session in report["sessions"]:
        for side, counts in (("peer", session["tx"]), ("ours", session["rx"])):
            for operation in _TRACE_NAMES.values():
                messages[(side, operation)] += counts.get(operation, 0)
            numbered[side] += counts["segments"] + 2      # Initiate or Accept, and Terminate
    # A refused one is an Initiate and a Terminate, both of number 0, as are the first messages of a session that comes on that stream later.
    elsewhere = set(report["refused"]) - {session["stream"] for session in report["sessions"]}
    numbered.update({"ours": len(elsewhere), "peer": len(elsewhere)})
    return Wanted(2 * len(report["sessions"]) + len(report["refused"]), messages, numbered)


def check_trace(binary: Path, pcap: Path, want: Wanted, *, ours_connects: bool) -> None:
    """What `iwarp trace` makes of the packets."""
    done = run_tool([str(binary), "trace", "--json", str(pcap)], _TIMEOUT, log=pcap.with_suffix(".trace.log"))
    check_equal(f"exit status of iwarp trace {pcap.name}", done.returncode, 0)
    seen: Counter[tuple[str, str]] = Counter()
    control: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if "layer" not in record:
            continue
        # A Terminate of RDMAP is counted.
        check(not record["error"] or (record["layer"], record["pdu"]) == ("rdmap", "Terminate"), f"iwarp trace {pcap.name}: {line.decode()}")
        side = "ours" if (record["direction"] == "tx") == ours_connects else "peer"
        if record["layer"] == "rdmap":
            check(record["fields"].get("complete", 1) == 1 and "expected_msn" not in record["fields"], f"{pcap.name}: {line.decode()}")
            seen[(side, _TRACE_NAMES[record["pdu"]])] += 1
        elif record["layer"] == "sctp":
            control[record["pdu"]] += 1
    check_equal(f"messages that iwarp trace sees in {pcap.name}", dict(seen), {key: n for key, n in want.messages.items() if n})
    check_equal(f"Terminates that iwarp trace sees in {pcap.name}", control["Terminate"], want.terminates)
    check_equal("Lost and Undecoded", (control["Lost"], control["Undecoded"]), (0, 0))


def check_tshark(pcap: Path, want: Wanted) -> int:
    """What tshark makes of them with tools/wireshark/ddp_sctp.lua: no malformed frame, every message. Returns its frames."""
    fields = ("frame.number", "ip.src", "sctp.checksum.status", "sctp.data_sid", "ddp_sctp.ssn", "_ws.malformed", "ddp_sctp.short",
              "ddp_sctp.pd", "sctp.data_tsn")
    argv = ["tshark", "-n", "-r", str(pcap), "-X", f"lua_script:{_LUA}", "-o", "sctp.checksum:CRC 32c", "-d",
            f"udp.port=={SCTP_UDP_PORT},sctp", "-T", "fields", "-E", "separator=|", *(word for name in fields for word in ("-e", name))]
    done = run_tool(argv, _TIMEOUT, log=pcap.with_suffix(".tshark.log"))
    check_equal(f"exit status of tshark of {pcap.name}", done.returncode, 0)
    numbered: dict[str, set[tuple[str, str]]] = {"ours": set(), "peer": set()}
    frames = 0
    for line in done.stdout.decode().splitlines():
        row = dict(zip(fields, line.split("|")))
        frames += 1
        where = f"{pcap.name}, frame {row['frame.number']}"
        check(not (row["_ws.malformed"] or row["ddp_sctp.short"] or row["ddp_sctp.pd"]), f"{where} is malformed: {line}")
        check_equal(f"checksum status of {where}", row["sctp.checksum.status"], "1")
        side = "ours" if row["ip.src"] == HOST_ADDRESS else "peer"
        numbers = row["ddp_sctp.ssn"].split(",") if row["ddp_sctp.ssn"] else []
        streams = row["sctp.data_sid"].split(",") if row["sctp.data_sid"] else []
        numbered[side].update(zip(streams, numbers))
    check_equal(f"messages that tshark sees in {pcap.name}", {side: len(n) for side, n in numbered.items()}, dict(want.numbered))
    return frames
