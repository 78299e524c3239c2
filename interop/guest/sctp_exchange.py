"""What both ends do on a session, once it is there: tests/sctp_cm/exchange.h says the same in C++.

The private data of Initiate and Accept are a Hello: how many rounds its sender begins, and a buffer of its own, SLOTS slots for the
peer's Writes and one more slot, which the peer reads. In each round an end writes to a slot of the peer, sends a message that says
so, and reads a part of the last slot; all of it is a pattern that both ends know. The peer checks order and octets of what it gets
when the message comes, and acknowledges the round with a message. At most SLOTS rounds are under way. An end whose rounds are all
acknowledged, and whose Reads are done, says Done; when both have, the active end terminates the session.

A Hello with FAULTY in place of the rounds announces that its sender is about to write where it may not.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from sctp_session import ACTIVE, Offer, Session

SLOTS, SLOT_BYTES, MOST_TEXT = 4, 65536, 20000
FAULTY = 0xFFFFFFFF
_MAGIC = b"DXCH"
_HELLO = struct.Struct(">4sIIQII")      # magic, rounds, STag, offset, octets of a slot, slots
_HEAD = struct.Struct(">B3xIII")        # kind, round, octets written, octets of text behind this
_DATA, _ACK, _DONE = 1, 2, 3
_TABLE_BYTES = 65521
_STAG, _SINK_STAG = 0x5043, 0x5040


class Mismatch(Exception):
    """Something was lost, came out of order, or has other octets."""


def _make_table() -> bytes:
    table, x = bytearray(_TABLE_BYTES), 1
    for i in range(_TABLE_BYTES):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
        table[i] = x >> 16 & 0xFF
    return bytes(table)


_TABLE = _make_table() * 2


def pattern(seed: int, size: int) -> bytes:
    """Octets that differ at every place and with every seed; up to 65,536."""
    at = seed * 1009 % _TABLE_BYTES
    return (_TABLE[at:at + _TABLE_BYTES] * 2)[:size]


@dataclass(frozen=True)
class Round:
    """What an end does in a round. `side`: 0 active, 1 passive."""

    side: int
    number: int

    @property
    def written(self) -> bytes:
        return pattern(self.side * 20000 + self.number, self.number * 7919 % (SLOT_BYTES + 1))

    @property
    def text(self) -> bytes:
        return pattern(self.side * 20000 + 10000 + self.number, self.number * 3571 % (MOST_TEXT + 1))

    @property
    def read(self) -> tuple[int, int]:
        """Where in the last slot of the peer, and how many octets."""
        size = self.number * 5003 % (SLOT_BYTES + 1)
        return (SLOT_BYTES - size) // 2, size

    @property
    def slot(self) -> int:
        return self.number % SLOTS * SLOT_BYTES


def _readable(side: int) -> bytes:
    return pattern(50021 + side, SLOT_BYTES)


class Exchange:
    """The application of a session: makes it, and hears of it."""

    def __init__(self, role: str, stream: int, offer: Offer, rounds: int) -> None:
        self._side = 0 if role == ACTIVE else 1
        self._rounds = rounds
        self._peer_rounds = -1
        self._region = bytearray(SLOTS * SLOT_BYTES) + bytearray(_readable(self._side))
        self._sink = bytearray(SLOTS * SLOT_BYTES)
        self._to = 0x7F0000000000 + stream      # not a multiple of anything
        self._peer_stag = self._peer_to = 0
        self._begun = self._acked = self._read_back = self._taken = 0
        self._said_done = self._heard_done = False
        hello = _HELLO.pack(_MAGIC, rounds, _STAG, self._to, SLOT_BYTES, SLOTS)
        self.session = Session(role, stream, offer, self, hello)
        self.session.memory.register(_STAG, self._to, self._region, remote=True)
        self.session.memory.register(_SINK_STAG, 0, self._sink, remote=False)

    def established(self, private_data: bytes) -> None:
        if len(private_data) != _HELLO.size:
            raise Mismatch(f"private data of {len(private_data)} octets")
        magic, self._peer_rounds, self._peer_stag, self._peer_to, slot_bytes, slots = _HELLO.unpack(private_data)
        if (magic, slot_bytes, slots) != (_MAGIC, SLOT_BYTES, SLOTS):
            raise Mismatch(f"private data {private_data.hex()}")
        self._go_on()

    def received(self, payload: bytes) -> None:
        kind, number, written, size = _HEAD.unpack_from(payload)
        text = payload[_HEAD.size:]
        if size != len(text):
            raise Mismatch(f"{size} octets of text announced, {len(text)} came")
        if kind == _DATA:
            self._check(number, written, text)
            self.session.send(_HEAD.pack(_ACK, number, 0, 0))
            self._taken += 1
        elif kind == _ACK and number == self._acked < self._begun:
            self._acked += 1
        elif kind == _DONE and not self._heard_done and self._taken == self._peer_rounds:
            self._heard_done = True
        else:
            raise Mismatch(f"message of kind {kind}, round {number}, after {self._taken} rounds and {self._acked} acknowledgements")
        self._go_on()

    def read_done(self, number: int) -> None:
        at, size = Round(self._side, self._read_back).read
        slot = Round(self._side, self._read_back).slot
        if number != self._read_back + 1 or self._sink[slot:slot + size] != _readable(1 - self._side)[at:at + size]:
            raise Mismatch(f"Read {number} of {size} octets")
        self._read_back += 1
        self._go_on()

    def _check(self, number: int, written: int, text: bytes) -> None:
        expected = Round(1 - self._side, number)
        if number != self._taken or number >= self._peer_rounds:
            raise Mismatch(f"round {number} instead of {self._taken}")
        if written != len(expected.written) or self._region[expected.slot:expected.slot + written] != expected.written:
            raise Mismatch(f"what was written in round {number}")
        if text != expected.text:
            raise Mismatch(f"the text of round {number}")

    def _go_on(self) -> None:
        while self._begun < self._rounds and self._begun - min(self._acked, self._read_back) < SLOTS:
            r = Round(self._side, self._begun)
            self._begun += 1
            at, size = r.read
            self.session.write(self._peer_stag, self._peer_to + r.slot, r.written)
            self.session.send(_HEAD.pack(_DATA, r.number, len(r.written), len(r.text)) + r.text)
            self.session.read((_SINK_STAG, r.slot), (self._peer_stag, self._peer_to + SLOTS * SLOT_BYTES + at), size)
        if not self._said_done and self._acked == self._read_back == self._rounds:
            self._said_done = True
            self.session.send(_HEAD.pack(_DONE, 0, 0, 0))
        if self.complete and self._side == 0 and self.session.state == "open":
            self.session.terminate()

    @property
    def complete(self) -> bool:
        """All rounds of both ends are done and verified."""
        return self._said_done and self._heard_done

    def report(self) -> dict[str, Any]:
        return self.session.report(complete=self.complete, rounds=self._taken)


class Faulty:
    """The application of an active end that breaks a rule: the peer has to end the session with a Terminate that says so."""

    def __init__(self, stream: int, offer: Offer) -> None:
        self.session = Session(ACTIVE, stream, offer, self, _HELLO.pack(_MAGIC, FAULTY, 0, 0, SLOT_BYTES, SLOTS))

    def established(self, private_data: bytes) -> None:
        stag = _HELLO.unpack(private_data)[2]
        self.session.write(stag ^ 0xFFFFFF00, 0, b"x")

    def received(self, payload: bytes) -> None:
        raise Mismatch("a message on a session that the peer has to end")

    def read_done(self, number: int) -> None:
        raise Mismatch("no Read was begun")

    def report(self) -> dict[str, Any]:
        # Layer DDP, tagged buffer, invalid STag.
        return self.session.report(complete=self.session.remote_terminate == (1, 1, 0), rounds=0)
