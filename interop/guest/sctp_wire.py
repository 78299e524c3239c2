"""Octets of DDP over SCTP: session control (RFC 5043 s5.2.3, RFC 6581 s7), DDP segments (RFC 5041 s4) with the RDMAP header
(RFC 5040 s4), and the order of messages by the DDP-SSN.

A message of SCTP is the DDP-SSN, two octets, and what is called its body here. Written from the documents, with the standard
library alone and nothing of iwarp's: a peer that shares its errors would prove little.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Iterator

PPID_SEGMENT, PPID_CONTROL = 16, 17
INDICATION = 1              # adaptation layer indication of DDP
SEQUENCE = struct.Struct(">H")
SEQUENCES = 1 << 16
MAX_PRIVATE_DATA = 512      # enhanced data included

INITIATE, ACCEPT, REJECT, TERMINATE = 1, 2, 3, 4
_ENHANCED = 4               # what RFC 6581 adds to the codes of the first three

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SOLICITED, SEND_SOLICITED_INVALIDATE, RDMAP_TERMINATE = range(8)
SENDS = (SEND, SEND_INVALIDATE, SEND_SOLICITED, SEND_SOLICITED_INVALIDATE)
_TAGGED_OPCODES = (WRITE, READ_RESPONSE)
SEND_QUEUE, READ_QUEUE, TERMINATE_QUEUE = 0, 1, 2

_DATA = struct.Struct(">HH")
_TAGGED = struct.Struct(">BBIQ")
_UNTAGGED = struct.Struct(">BBIIII")
_READ = struct.Struct(">IQIIQ")
_T, _L, _DV, _RV = 0x80, 0x40, 0x01, 0x40


class Malformed(Exception):
    """The peer has sent what no document allows."""


@dataclass(frozen=True)
class EnhancedData:
    """The 32 bits of RFC 6581 s9: flags A, B, C, D, and the depths."""

    ird: int
    ord: int
    p2p: bool = False
    rtr_send: bool = False
    rtr_write: bool = False
    rtr_read: bool = False

    def pack(self) -> bytes:
        return _DATA.pack(self.p2p << 15 | self.rtr_send << 14 | self.ird, self.rtr_write << 15 | self.rtr_read << 14 | self.ord)

    @staticmethod
    def unpack(octets: bytes) -> "EnhancedData":
        first, second = _DATA.unpack(octets)
        return EnhancedData(first & 0x3FFF, second & 0x3FFF, bool(first & 0x8000), bool(first & 0x4000), bool(second & 0x8000),
                            bool(second & 0x4000))

    def forms(self) -> set[str]:
        """The RTR forms that the flags name."""
        return {form for form, flag in (("send", self.rtr_send), ("write", self.rtr_write), ("read", self.rtr_read)) if flag}


@dataclass(frozen=True)
class Control:
    """A session control message, enhanced when it has enhanced data."""

    function: int
    data: EnhancedData | None = None
    private_data: bytes = b""

    def pack(self) -> bytes:
        """Its body."""
        if self.data is None:
            return _DATA.pack(self.function, 0)[:2] + self.private_data
        return _DATA.pack(self.function + _ENHANCED, 0)[:2] + self.data.pack() + self.private_data

    @staticmethod
    def parse(body: bytes) -> "Control":
        if len(body) < 2:
            raise Malformed("session control message without a function code")
        code, private_data = int.from_bytes(body[:2], "big"), body[2:]
        if len(private_data) > MAX_PRIVATE_DATA:
            raise Malformed(f"{len(private_data)} octets of private data")
        if code == TERMINATE and private_data:
            raise Malformed("Terminate with private data")
        if INITIATE <= code <= TERMINATE:
            return Control(code, None, private_data)
        if not INITIATE <= code - _ENHANCED <= REJECT or len(private_data) < 4:
            raise Malformed(f"session control message with function code {code} and {len(private_data)} octets")
        return Control(code - _ENHANCED, EnhancedData.unpack(private_data[:4]), private_data[4:])


@dataclass(frozen=True)
class Segment:
    """A DDP segment: its place in memory (stag, to), or in an untagged message (queue, msn, offset)."""

    opcode: int
    last: bool
    payload: bytes
    stag: int = 0
    to: int = 0
    invalidate: int = 0     # of an untagged one: octets that RDMAP has in the DDP header
    queue: int = 0
    msn: int = 0
    offset: int = 0

    @property
    def tagged(self) -> bool:
        return self.opcode in _TAGGED_OPCODES

    def pack(self) -> bytes:
        control, rdmap = _DV | (_L if self.last else 0), _RV | self.opcode
        if self.tagged:
            return _TAGGED.pack(control | _T, rdmap, self.stag, self.to) + self.payload
        return _UNTAGGED.pack(control, rdmap, self.invalidate, self.queue, self.msn, self.offset) + self.payload

    @staticmethod
    def parse(body: bytes) -> "Segment":
        if len(body) < 2:
            raise Malformed("DDP segment of fewer than 2 octets")
        control, rdmap = body[0], body[1]
        opcode, tagged, last = rdmap & 0x0F, bool(control & _T), bool(control & _L)
        if control & 0x3F != _DV or rdmap & 0xF0 != _RV or opcode > RDMAP_TERMINATE or tagged != (opcode in _TAGGED_OPCODES):
            raise Malformed(f"DDP segment that begins with {body[:2].hex()}")
        if len(body) < header_bytes(opcode):
            raise Malformed(f"DDP header of {len(body)} octets")
        payload = body[header_bytes(opcode):]
        if tagged:
            _, _, stag, to = _TAGGED.unpack_from(body)
            return Segment(opcode, last, payload, stag, to)
        _, _, invalidate, queue, msn, offset = _UNTAGGED.unpack_from(body)
        if queue != queue_of(opcode):
            raise Malformed(f"opcode {opcode} on queue {queue}")
        return Segment(opcode, last, payload, invalidate=invalidate, queue=queue, msn=msn, offset=offset)


@dataclass(frozen=True)
class ReadRequest:
    """What an RDMA Read Request has behind its headers."""

    sink_stag: int
    sink_to: int
    size: int
    source_stag: int
    source_to: int

    def pack(self) -> bytes:
        return _READ.pack(self.sink_stag, self.sink_to, self.size, self.source_stag, self.source_to)

    @staticmethod
    def parse(payload: bytes) -> "ReadRequest":
        if len(payload) != _READ.size:
            raise Malformed(f"Read Request of {len(payload)} octets")
        return ReadRequest(*_READ.unpack(payload))


def parse_terminate(payload: bytes) -> tuple[int, int, int]:
    """Layer, error type and error code of an RDMAP Terminate."""
    if len(payload) < 4:
        raise Malformed(f"Terminate of {len(payload)} octets")
    return payload[0] >> 4, payload[0] & 0x0F, payload[1]


def header_bytes(opcode: int) -> int:
    return _TAGGED.size if opcode in _TAGGED_OPCODES else _UNTAGGED.size


def queue_of(opcode: int) -> int:
    """The queue that an untagged message belongs to."""
    return {READ_REQUEST: READ_QUEUE, RDMAP_TERMINATE: TERMINATE_QUEUE}.get(opcode, SEND_QUEUE)


def cut(opcode: int, payload: bytes, most: int, **place: Any) -> Iterator[Segment]:
    """The segments of a message, of at most `most` octets each; one of no octets has one."""
    room = most - header_bytes(opcode)
    tagged = opcode in _TAGGED_OPCODES
    to = place.pop("to", 0)
    for at in range(0, max(len(payload), 1), room):
        where = {"to": to + at} if tagged else {"offset": at, "queue": queue_of(opcode)}
        yield Segment(opcode, at + room >= len(payload), payload[at:at + room], **where, **place)


class Order:
    """Puts the messages of one direction of a stream into the order of their DDP-SSN."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, Any] = {}
        self.early = 0      # messages that came before one with a lower number

    def add(self, number: int, message: Any) -> Iterator[Any]:
        """What is due now. A number that was there before, or is too far ahead, is an error of the peer."""
        ahead = (number - self._next) % SEQUENCES
        if ahead >= SEQUENCES // 2 or number in self._early:
            raise Malformed(f"DDP-SSN {number} again; {self._next} is due")
        self.early += ahead != 0
        self._early[number] = message
        while self._next in self._early:
            due = self._early.pop(self._next)
            self._next = (self._next + 1) % SEQUENCES
            yield due

    @property
    def waiting(self) -> int:
        """Messages that wait for a lower number."""
        return len(self._early)
