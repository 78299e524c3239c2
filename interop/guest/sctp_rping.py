"""Either end of rdma-core's rping on a session over SCTP, for `iwarp rping --llp sctp`.

An iteration: the client advertises a buffer, the server reads it by RDMA Read and says go ahead; the client advertises another one, the
server writes the text back by RDMA Write and says go ahead. Both ends verify.
"""

from __future__ import annotations

import struct
from typing import Any

from sctp_exchange import Mismatch
from sctp_session import ACTIVE, Offer, Session

_INFO = struct.Struct(">QII")       # offset, STag, octets; zeros: go ahead
_SOURCE_STAG, _SINK_STAG = 0x7174, 0x7175
_GO_AHEAD = _INFO.pack(0, 0, 0)


def ping(number: int, size: int) -> bytes:
    """The text of an iteration: letters that begin one further each time, and a NUL at the end."""
    head = f"rdma-ping-{number}: ".encode()
    letters = bytes((number % 58 + i) % 58 + 65 for i in range(58))
    return (head + letters * (size // 58 + 1))[:size - 1] + b"\0"


class Rping:
    """The application of a session: the active end is the client."""

    def __init__(self, role: str, stream: int, offer: Offer, count: int, size: int) -> None:
        self._count, self._size = count, size       # of the client
        self._done = 0
        self._half = False      # client: its sink is advertised; server: the client's source was read
        self._source, self._sink = bytearray(max(size, 65535)), bytearray(max(size, 65535))
        self.session = Session(role, stream, offer, self, b"")
        self.session.memory.register(_SOURCE_STAG, 0x1000, self._source, remote=role == ACTIVE)
        self.session.memory.register(_SINK_STAG, 0x2000, self._sink, remote=role == ACTIVE)

    def established(self, private_data: bytes) -> None:
        if private_data:
            raise Mismatch(f"rping with private data {private_data.hex()}")
        if self.session.role == ACTIVE:
            self._advertise_source()

    def received(self, payload: bytes) -> None:
        if len(payload) != _INFO.size:
            raise Mismatch(f"rping message of {len(payload)} octets")
        if self.session.role == ACTIVE:
            self._on_go_ahead(payload)
        else:
            self._on_advertisement(*_INFO.unpack(payload))

    def read_done(self, number: int) -> None:
        if self._sink[:self._size] != ping(self._done, self._size):
            raise Mismatch(f"ping {self._done} of {self._size} octets")
        self.session.send(_GO_AHEAD)
        self._half = True

    # The client.

    def _advertise_source(self) -> None:
        self._source[:self._size] = ping(self._done, self._size)
        self.session.send(_INFO.pack(0x1000, _SOURCE_STAG, self._size))

    def _on_go_ahead(self, payload: bytes) -> None:
        if payload != _GO_AHEAD:
            raise Mismatch(f"go-ahead {payload.hex()}")
        self._half = not self._half
        if self._half:
            self._sink[:self._size] = bytes(self._size)
            self.session.send(_INFO.pack(0x2000, _SINK_STAG, self._size))
            return
        if self._sink[:self._size] != self._source[:self._size]:
            raise Mismatch(f"what came back of ping {self._done}")
        self._done += 1
        if self._done < self._count:
            self._advertise_source()
        else:
            self.session.terminate()

    # The server.

    def _on_advertisement(self, to: int, stag: int, size: int) -> None:
        if not self._half:
            self._size = size
            self.session.read((_SINK_STAG, 0x2000), (stag, to), size)
            return
        self.session.write(stag, to, bytes(self._sink[:self._sink.index(0) + 1]))
        self.session.send(_GO_AHEAD)
        self._half = False
        self._done += 1

    @property
    def complete(self) -> bool:
        """Of the client: all iterations. The server leaves it to the client."""
        return not self._half and (self._done == self._count or self.session.role != ACTIVE)

    def report(self) -> dict[str, Any]:
        return self.session.report(complete=self.complete, rounds=self._done)
