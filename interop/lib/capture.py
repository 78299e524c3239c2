"""Reads a boot's capture, cut into frames, with tshark: framing, CRC, malformed packets, and the operations each side sent.

tshark's view is compared with our own counters message by message, so a stream whose framing tshark lost cannot pass.
tshark 4.0 calls an NFS READ reply malformed when its data went by RDMA Write, between two kernels as well; that kind, and
only that kind, is accepted.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Collection, Iterable, Mapping

from lib.errors import ScenarioFailure
from lib.guest import HOST_ADDRESS
from lib.iwarp_tool import Connection
from lib.processes import run_tool
from lib.reframe import reframe

# RDMAP opcode -> the name that our counters use.
_OPERATIONS = {0: "write", 1: "read_request", 2: "read", 3: "send", 4: "send", 5: "send", 6: "send", 7: "terminate"}
_COLUMNS = ("frame.number", "ip.src", "tcp.srcport", "tcp.dstport", "tcp.stream", "iwarp_mpa.key.req", "iwarp_mpa.key.rep",
            "iwarp_rdma.opcode", "iwarp_ddp.last_flag", "iwarp_rdma.rdmardsz", "_ws.malformed", "rpc.msgtyp", "nfs.opcode", "nfs.procedure_v3")
# Not a message: the octets that one side's RDMA Read Requests ask for.
READ_OCTETS = "octets asked for by Read"
_NFS4_READ, _NFS3_READ, _RPC_REPLY = "25", "6", "1"
_TIMEOUT = 180.0


@dataclass(frozen=True)
class Traffic:
    """What one scenario put on one TCP port: complete messages by (side, operation), side "ours" or "peer", and the octets
    that each side's RDMA Reads asked for."""

    scenario: str
    port: int                       # as seen in the guest's network
    connections: int
    messages: Mapping[tuple[str, str], int]
    crc: bool
    hasty: int = 0                  # so many more may have been given up in the midst of MPA startup, or rejected, which no counter knows
    rpc: bool = True                # False: of another protocol, in which tshark at times believes to see RPC-over-RDMA


@dataclass
class _Seen:
    requests: int = 0
    replies: int = 0
    messages: Counter[tuple[str, str]] = field(default_factory=Counter)
    good_crcs: int = 0


def messages_of(connections: Iterable[Connection]) -> dict[tuple[str, str], int]:
    """Messages by side and operation, from our own counters. These count an RTR received, but not one sent. Every Read
    Request was answered by one Read Response."""
    names = {("ours", "send"): "tx_send", ("peer", "send"): "rx_send",
             ("ours", "write"): "tx_write", ("peer", "write"): "rx_write",
             ("ours", "read_request"): "tx_read", ("peer", "read"): "tx_read", ("ours", READ_OCTETS): "rx_read_bytes",
             ("peer", "read_request"): "rx_read", ("ours", "read"): "rx_read", ("peer", READ_OCTETS): "tx_read_bytes"}
    messages: Counter[tuple[str, str]] = Counter()
    for connection in connections:
        for key, name in names.items():
            messages[key] += connection.counters[name]
        messages[("ours", "write")] += connection.counters.get("tx_wake", 0)     # not counted as Writes
        if connection.negotiated["role"] == "initiator":
            if connection.negotiated.get("rtr") == "write":
                messages[("ours", "write")] += 1
            elif connection.negotiated.get("rtr") == "read":
                messages[("ours", "read_request")] += 1
                messages[("peer", "read")] += 1
    return dict(messages)


def by_port(traffic: Iterable[Traffic]) -> dict[int, Traffic]:
    """What a boot put on each port: scenarios that share a server's port are taken together."""
    merged: dict[int, Traffic] = {}
    for item in traffic:
        other = merged.get(item.port)
        merged[item.port] = item if other is None else Traffic(
            f"{other.scenario}, {item.scenario}", item.port, other.connections + item.connections,
            {key: other.messages[key] + item.messages[key] for key in other.messages}, other.crc or item.crc,
            other.hasty + item.hasty, other.rpc and item.rpc)
    return merged


def check_capture(pcap: Path, traffic: Iterable[Traffic]) -> str:
    """Compare a capture with what the scenarios did. Returns a one-line summary; fails the scenario on any difference."""
    wanted = by_port(traffic)
    seen: dict[int, _Seen] = {port: _Seen() for port in wanted}
    frames = pcap.with_name("frames.pcap")
    problems = reframe(pcap, frames, set(wanted))
    known = 0
    with ThreadPoolExecutor(1) as second:
        # tshark is slow on large captures: its two passes share the machine.
        crcs = second.submit(_check_crcs, frames, set(wanted)) if any(item.crc for item in wanted.values()) else None
        for row in _read_rows(frames):
            port = next((int(p) for p in (row["tcp.srcport"], row["tcp.dstport"]) if p.isdigit() and int(p) in wanted), None)
            if port is None:
                continue
            side = "ours" if row["ip.src"] == HOST_ADDRESS else "peer"
            _count(row, side, seen[port])
            if row["_ws.malformed"]:
                if _is_known_malformed(row):
                    known += 1
                elif side == "ours" and (wanted[port].rpc or not _is_rpc_only(row["_ws.malformed"])):
                    problems.append(f"frame {row['frame.number']} (port {port}): {row['_ws.malformed']}")
        if crcs is not None:
            good, bad = crcs.result()
            problems += bad
            for port, count in good.items():
                seen[port].good_crcs = count
    for item in wanted.values():
        problems += _compare(item, seen[item.port])
    if problems:
        more = f" ... and {len(problems) - 8} more" if len(problems) > 8 else ""
        raise ScenarioFailure(f"in {frames.name}: " + "; ".join(problems[:8]) + more)
    count = sum(sum(n for key, n in s.messages.items() if key[1] != READ_OCTETS) for s in seen.values())
    return f"{count} messages on {len(wanted)} ports, {known} known READ replies, {sum(s.good_crcs for s in seen.values())} good CRCs"


def _count(row: Mapping[str, str], side: str, seen: _Seen) -> None:
    seen.requests += bool(row["iwarp_mpa.key.req"])
    seen.replies += bool(row["iwarp_mpa.key.rep"])
    # A frame may hold several FPDUs; each contributes one opcode and one last flag.
    for opcode, last in zip(_split(row["iwarp_rdma.opcode"]), _split(row["iwarp_ddp.last_flag"])):
        if last in ("1", "True"):
            seen.messages[(side, _OPERATIONS.get(int(opcode, 0), f"opcode {opcode}"))] += 1
    seen.messages[(side, READ_OCTETS)] += sum(map(int, _split(row["iwarp_rdma.rdmardsz"])))


def _compare(item: Traffic, seen: _Seen) -> list[str]:
    found = []
    most = item.connections + item.hasty
    if not item.connections <= seen.requests <= most or not item.connections <= seen.replies <= seen.requests:
        found.append(f"{item.scenario}: {seen.requests} MPA Requests and {seen.replies} Replies, "
                     f"expected {item.connections} of each, and {item.hasty} more at most")
    for key, expected in item.messages.items():
        # A startup that was given up may have got as far as its RTR, an empty Write.
        more = seen.requests - item.connections if key == ("ours", "write") else 0
        if not expected <= seen.messages[key] <= expected + more:
            found.append(f"{item.scenario} (port {item.port}): {seen.messages[key]} '{key[1]}' from {key[0]}, "
                         f"our counters say {expected}")
    for side in ("ours", "peer"):
        if seen.messages[(side, "terminate")]:
            found.append(f"{item.scenario} (port {item.port}): Terminate from {side}")
    if item.crc and not seen.good_crcs:
        found.append(f"{item.scenario} (port {item.port}): no FPDU with a good CRC")
    return found


def _is_rpc_only(malformed: str) -> bool:
    return malformed.count("Malformed Packet") == malformed.count("Malformed Packet: RPCoRDMA")


def _is_known_malformed(row: Mapping[str, str]) -> bool:
    is_read = _NFS4_READ in _split(row["nfs.opcode"]) or _NFS3_READ in _split(row["nfs.procedure_v3"])
    return "NFS" in row["_ws.malformed"] and _RPC_REPLY in _split(row["rpc.msgtyp"]) and is_read


def _read_rows(pcap: Path) -> Iterable[dict[str, str]]:
    argv = _tshark(pcap, "-Y", "iwarp_mpa || _ws.malformed", "-T", "fields", "-E", "separator=/t")
    for column in _COLUMNS:
        argv += ["-e", column]
    for line in _output(argv):
        yield dict(zip(_COLUMNS, line.split("\t")))


def _check_crcs(pcap: Path, wanted: Collection[int]) -> tuple[Counter[int], list[str]]:
    """Good CRCs by port, and the bad ones. tshark shows its verdict only as text below the MPA layer."""
    good: Counter[int] = Counter()
    bad = []
    frame, ports = "?", []
    for line in _output(_tshark(pcap, "-Y", "iwarp_mpa.crc_check || iwarp_mpa.crc", "-O", "iwarp_mpa")):
        if line.startswith("Frame "):
            frame = line.split()[1].rstrip(":")
        elif line.startswith("Transmission Control Protocol"):
            ports = [int(word.rstrip(",")) for word in line.split() if word.rstrip(",").isdigit()][:2]
        elif "(Good CRC32)" in line:
            good.update(port for port in ports if port in wanted)
        elif "(Bad CRC32" in line:
            bad.append(f"frame {frame}: {line.strip()}")
    return good, bad


def _tshark(pcap: Path, *arguments: str) -> list[str]:
    # Ports are chosen at run time and may collide with ones that tshark knows: heuristics first.
    return ["tshark", "-n", "-o", "tcp.try_heuristic_first:TRUE", "-o", "tcp.desegment_tcp_streams:TRUE",
            "-r", str(pcap), *arguments]


def _output(argv: list[str]) -> list[str]:
    done: subprocess.CompletedProcess[bytes] = run_tool(argv, _TIMEOUT)
    if done.returncode != 0:
        raise ScenarioFailure(f"tshark failed: {done.stderr.decode(errors='replace')[-500:].strip()}")
    return done.stdout.decode(errors="replace").splitlines()


def _split(text: str) -> list[str]:
    return text.split(",") if text else []
