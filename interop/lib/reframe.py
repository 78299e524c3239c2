"""Rewrites a capture so that each TCP segment holds exactly one MPA startup frame or FPDU, for tshark to read.

QEMU's user network ends the TCP connection between the stacks, so segment boundaries in the capture say nothing about
either of them, and tshark 4.0 loses framing where an FPDU ends and several more follow in one segment. Every octet, its
order and its time stay; only the cuts move. Framing is found here from the lengths alone, independently of our C++ code.
A connection whose ports an earlier one had gets another client port: tshark would read it as the rest of the earlier one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Collection, Iterator

_PCAP_MAGIC = 0xA1B2C3D4
_ETHERNET, _TCP_LIMIT = 14, 65535 - 40
_SYN, _RST, _FIN, _ACK = 0x02, 0x04, 0x01, 0x10
_STARTUP_BYTES = 20
_FREE_PORTS = range(61000, 65536)  # beyond those that Linux gives to clients


@dataclass
class _Segment:
    """The parts of a captured TCP/IPv4 packet that matter here."""

    ethernet: bytes
    source: bytes
    destination: bytes
    ports: tuple[int, int]
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    names: tuple[int, int] | None = None  # the ports to write, if others


@dataclass
class _Direction:
    """One half of a connection: what has arrived in order and is not yet a whole frame."""

    next_sequence: int
    pending: bytearray = field(default_factory=bytearray)
    early: dict[int, bytes] = field(default_factory=dict)
    started: bool = False       # the MPA startup frame has passed
    reset: bool = False

    def add(self, sequence: int, payload: bytes) -> None:
        """Take a segment; duplicates fall away, early ones wait."""
        self.early[sequence] = max(payload, self.early.get(sequence, b""), key=len)
        for start in sorted(self.early, key=lambda s: _distance(self.next_sequence, s)):
            skip = -_distance(self.next_sequence, start)
            if skip < 0:
                break
            data = self.early.pop(start)
            if skip < len(data):
                self.pending += data[skip:]
                self.next_sequence = (self.next_sequence + len(data) - skip) & 0xFFFFFFFF

    @property
    def written(self) -> int:
        """The sequence number after the last whole frame. No packet written may name a later one, be it as its own or as
        the one it acknowledges: tshark would call the frame that follows a retransmission and leave it undecoded."""
        return (self.next_sequence - len(self.pending)) & 0xFFFFFFFF

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Whole frames with the sequence number of their first octet."""
        while True:
            size = self._frame_bytes()
            if size is None or len(self.pending) < size:
                return
            start = self.written
            frame = bytes(self.pending[:size])
            del self.pending[:size]
            self.started = True
            yield start, frame

    def _frame_bytes(self) -> int | None:
        if not self.started:
            if len(self.pending) < _STARTUP_BYTES:
                return None
            return _STARTUP_BYTES + int(struct.unpack_from(">H", self.pending, 18)[0])
        if len(self.pending) < 2:
            return None
        unpadded = 2 + int(struct.unpack_from(">H", self.pending)[0])
        return unpadded + -unpadded % 4 + 4


class _PortNames:
    """What the client ports of the present connections are called in the capture written."""

    def __init__(self) -> None:
        self._seen: set[tuple[bytes, tuple[int, int]]] = set()
        self._other_name: dict[tuple[bytes, tuple[int, int]], int] = {}
        self._free = iter(_FREE_PORTS)

    def connection_begins(self, syn: _Segment) -> None:
        key = (syn.source, syn.ports)
        if key in self._seen:
            self._other_name[key] = next(self._free)
        self._seen.add(key)

    def apply(self, segment: _Segment) -> None:
        """Rewrites the ports of a segment of either direction."""
        client, server = segment.ports
        if (name := self._other_name.get((segment.source, (client, server)))) is not None:
            segment.names = (name, server)
        elif (name := self._other_name.get((segment.destination, (server, client)))) is not None:
            segment.names = (client, name)


def reframe(source: Path, target: Path, ports: Collection[int]) -> list[str]:
    """Write the connections of `ports` to `target`. Returns what is wrong: halves that end within a frame, lost octets."""
    halves: dict[tuple[bytes, tuple[int, int]], _Direction] = {}
    names = _PortNames()
    problems: list[str] = []
    with open(source, "rb") as reader, open(target, "wb") as writer:
        writer.write(reader.read(24))
        for stamp, segment in _segments(reader, ports):
            key = (segment.source, segment.ports)
            if segment.flags & _SYN and not segment.flags & _ACK:
                names.connection_begins(segment)
            names.apply(segment)
            if segment.flags & _SYN:
                problems += _unfinished(halves.get(key), segment.ports)
                halves[key] = _Direction((segment.sequence + 1) & 0xFFFFFFFF)
                _write(writer, stamp, segment, segment.sequence, b"", segment.flags)
                continue
            half = halves.get(key)
            if half is None:
                continue
            other = halves.get((segment.destination, segment.ports[::-1]))
            if other is not None and _distance(other.written, segment.acknowledged) > 0:
                segment.acknowledged = other.written
            if segment.payload:
                half.add(segment.sequence, segment.payload)
                for start, frame in half.frames():
                    for offset in range(0, len(frame), _TCP_LIMIT):
                        _write(writer, stamp, segment, start + offset, frame[offset:offset + _TCP_LIMIT], _ACK)
            elif not segment.flags & (_FIN | _RST):
                _write(writer, stamp, segment, half.written, b"", segment.flags)
            if segment.flags & (_FIN | _RST):
                half.reset = bool(segment.flags & _RST)
                _write(writer, stamp, segment, half.written, b"", segment.flags)
    for (_, pair), half in halves.items():
        problems += _unfinished(half, pair)
    return problems


def _unfinished(half: _Direction | None, ports: tuple[int, int]) -> list[str]:
    if half is None or half.reset:
        return []
    name = f"port {ports[0]} to {ports[1]}"
    found = [f"{name} ends within a frame, {len(half.pending)} octets into it"] if half.pending else []
    return found + ([f"{name} misses octets in the capture"] if half.early else [])


def _segments(reader: BinaryIO, ports: Collection[int]) -> Iterator[tuple[bytes, _Segment]]:
    reader.seek(0)
    if struct.unpack("<I", reader.read(24)[:4])[0] != _PCAP_MAGIC:
        raise ValueError("the capture is no little-endian pcap file")
    while len(header := reader.read(16)) == 16:
        packet = reader.read(struct.unpack_from("<I", header, 8)[0])
        if packet[12:14] != b"\x08\x00" or packet[23:24] != b"\x06":
            continue
        transport = _ETHERNET + (packet[14] & 15) * 4
        source, destination, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", packet, transport)
        if source not in ports and destination not in ports:
            continue
        end = _ETHERNET + struct.unpack_from(">H", packet, 16)[0]
        payload = packet[transport + (offset >> 4) * 4:end]
        yield header[:8], _Segment(packet[:14], packet[26:30], packet[30:34], (source, destination), sequence,
                                   acknowledged, flags, payload)


def _write(writer: BinaryIO, stamp: bytes, segment: _Segment, sequence: int, payload: bytes, flags: int) -> None:
    network = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 0, 0x4000, 64, 6, 0) + segment.source + segment.destination
    transport = struct.pack(">HHIIBBHHH", *(segment.names or segment.ports), sequence & 0xFFFFFFFF, segment.acknowledged, 0x50, flags, 65535, 0, 0)
    packet = segment.ethernet + network + transport + payload
    writer.write(stamp + struct.pack("<II", len(packet), len(packet)) + packet)


def _distance(reference: int, sequence: int) -> int:
    """How far `sequence` lies after `reference`, modulo 2^32."""
    return (sequence - reference + 0x80000000) % 0x100000000 - 0x80000000
