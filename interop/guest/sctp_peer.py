"""A peer of DDP over SCTP on the Linux kernel's SCTP, in UDP (RFC 6951): one association with any number of sessions, on each of which
sctp_exchange.py does its rounds, or sctp_rping.py. Standard library only.

Usage: sctp_peer.py --listen | --connect HOST   [--port P] [--udp-port P] [--sessions N] [--rounds N] [options of a session]

net.sctp.udp_port of the kernel has to be set before. Prints a JSON object at the end: what was agreed and counted for each session.
Ends with a message and status 1 when the peer breaks a rule, anything is lost, comes out of order or is not the data that it should
be, or time runs out. sctp_session.py says what a session is.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import struct
import sys
import time
from typing import Any, Callable, Protocol

import sctp_wire as wire
from sctp_exchange import Exchange, Faulty, Mismatch
from sctp_rping import Rping
from sctp_session import ACTIVE, PASSIVE, Offer, Session
from sctp_wire import Malformed

# linux/sctp.h
SCTP = 132
_INITMSG, _NODELAY, _ADAPTATION_LAYER, _DISABLE_FRAGMENTS, _EVENTS, _STATUS, _RECVRCVINFO, _UDP_ENCAPS = 2, 3, 7, 8, 11, 14, 32, 132
_CMSG_SNDINFO, _CMSG_RCVINFO = 2, 3
_NOTIFICATION, _UNORDERED = 0x8000, 1
_ASSOC_CHANGE, _SHUTDOWN, _ADAPTATION, _SENDER_DRY = 0x8001, 0x8005, 0x8007, 0x8009
_COMM_LOST, _CANT_START = 1, 4
_SNDINFO = struct.Struct("=HHIIi")          # stream, flags, PPID as it is in the packet, context, association
_RCVINFO = struct.Struct("=HHHxxI")         # stream, SSN, flags, PPID
_STATUS_HEAD = struct.Struct("=iiIHHHHI")   # association, state, window, unacked, pending, streams in, streams out, largest chunk
_MOST = 70000


def _events(*, dry: bool) -> bytes:
    """struct sctp_event_subscribe: association, shutdown, adaptation indication, sender dry."""
    return bytes([0, 1, 0, 0, 0, 1, 0, 1, 0, dry])


def encapsulation(port: int) -> bytes:
    """struct sctp_udpencaps for all peers of a socket: association, sockaddr_storage at the next multiple of 8, port."""
    return struct.pack("=ixxxx128x", 0) + struct.pack(">H", port) + bytes(6)


def make_socket(streams: int, fragments: bool) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    made.setsockopt(SCTP, _ADAPTATION_LAYER, struct.pack("=I", wire.INDICATION))
    made.setsockopt(SCTP, _INITMSG, struct.pack("=HHHH", streams, streams, 0, 0))
    made.setsockopt(SCTP, _EVENTS, _events(dry=False))
    made.setsockopt(SCTP, _NODELAY, struct.pack("=i", 1))
    made.setsockopt(SCTP, _DISABLE_FRAGMENTS, struct.pack("=i", not fragments))
    made.setsockopt(SCTP, _RECVRCVINFO, struct.pack("=i", 1))
    return made


class Application(Protocol):
    """What makes a session and hears of it."""

    session: Session

    def report(self) -> dict[str, Any]: ...


class Association:
    """An association and the sessions on it; `make` makes the application of the session on a stream."""

    def __init__(self, connection: socket.socket, role: str, make: Callable[[str, int], Application]) -> None:
        self._socket, self._role, self._make = connection, role, make
        connection.setsockopt(SCTP, _RECVRCVINFO, struct.pack("=i", 1))
        connection.setblocking(False)
        self.applications: dict[int, Application] = {}
        self.refused: list[int] = []        # streams of sessions that this end has refused
        self.indication: int | None = None
        self.shut_down = False
        self._part = b""
        self._asked: list[Application] = []    # those that wait for an event of SCTP that all has arrived

    def open(self, stream: int) -> None:
        self.applications[stream] = self._make(self._role, stream)

    def refuse(self, stream: int) -> None:
        """That session is over, and does not count as one."""
        self.refused.append(stream)
        del self.applications[stream]

    def move(self, patience: float) -> None:
        """Waits for something to happen, and takes and gives what can be."""
        wants = any(x.session.next_message() for x in self.applications.values())
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if wants else 0))
        poll.poll(patience * 1000)
        while not self.shut_down and self._receive():
            pass
        held = [x for x in self.applications.values() if x.session.held_back]
        if held and not self._asked:
            # All earlier events have been read: what comes now is of what was sent before.
            self._asked = held
            self._socket.setsockopt(SCTP, _EVENTS, _events(dry=True))
        for stream, application in self.applications.items():
            while (message := application.session.next_message()) and self._send(stream, *message):
                application.session.taken()
        for stream in [s for s, x in self.applications.items() if x.session.refused and x.session.state == "over"]:
            self.refuse(stream)

    def _send(self, stream: int, ppid: int, octets: bytes) -> bool:
        info = _SNDINFO.pack(stream, _UNORDERED, socket.htonl(ppid), 0, 0)
        try:
            sent = self._socket.sendmsg([octets], [(SCTP, _CMSG_SNDINFO, info)])
        except BlockingIOError:
            return False
        if sent != len(octets):
            raise Mismatch(f"SCTP took {sent} of {len(octets)} octets")
        return True

    def _receive(self) -> bool:
        try:
            octets, ancillary, flags, _ = self._socket.recvmsg(_MOST, 256)
        except BlockingIOError:
            return False
        if flags & _NOTIFICATION:
            self._on_event(octets)
            return True
        if not octets:
            self.shut_down = True
            return False
        self._part += octets
        if flags & socket.MSG_EOR:
            message, self._part = self._part, b""
            info = next(data for level, kind, data in ancillary if (level, kind) == (SCTP, _CMSG_RCVINFO))
            stream, _, chunk_flags, ppid = _RCVINFO.unpack_from(info)
            self._on_message(stream, socket.ntohl(ppid), bool(chunk_flags & _UNORDERED), message)
        return True

    def _on_message(self, stream: int, ppid: int, unordered: bool, message: bytes) -> None:
        if stream not in self.applications:
            if self._role == ACTIVE:
                raise Malformed(f"a message on stream {stream}, where there is no session")
            self.open(stream)
        self.applications[stream].session.receive(ppid, unordered, message)

    def _on_event(self, octets: bytes) -> None:
        kind, = struct.unpack_from("=H", octets)
        if kind == _ADAPTATION:
            self.indication, = struct.unpack_from("=I", octets, 8)
        elif kind == _ASSOC_CHANGE:
            state, = struct.unpack_from("=H", octets, 8)
            if state in (_COMM_LOST, _CANT_START):
                raise Mismatch(f"association lost (state {state})")
        elif kind == _SHUTDOWN:
            self.shut_down = True
        elif kind == _SENDER_DRY:
            for application in self._asked:
                application.session.first_arrived()
            self._asked = []
            self._socket.setsockopt(SCTP, _EVENTS, _events(dry=False))

    def status(self) -> dict[str, Any]:
        _, _, _, _, _, streams_in, streams_out, chunk = _STATUS_HEAD.unpack_from(self._socket.getsockopt(SCTP, _STATUS, 512))
        return {"streams_in": streams_in, "streams_out": streams_out, "largest_chunk": chunk}

    def shutdown(self) -> None:
        """In order: what SCTP has taken still arrives."""
        self._socket.close()

    def is_over(self, sessions: int) -> bool:
        return len(self.applications) == sessions and all(x.session.state == "over" for x in self.applications.values())


def serve(options: argparse.Namespace, deadline: float) -> dict[str, Any]:
    """The sessions of one association, from its beginning to its end."""
    offer = Offer(options.ird, options.ord, not options.plain, options.p2p, tuple(options.rtr.split(",")), options.segment)

    def make(role: str, stream: int) -> Application:
        if options.rping:
            return Rping(role, stream, offer, options.rounds, options.rping)
        if options.faulty and stream == 2 * (options.sessions - 1):
            return Faulty(stream, offer)
        return Exchange(role, stream, offer, options.rounds)

    first = make_socket(options.streams, options.fragments)
    if options.connect:
        first.setsockopt(SCTP, _UDP_ENCAPS, encapsulation(options.udp_port or options.port))
        first.connect((options.connect, options.port))
        association = Association(first, ACTIVE, make)
        for session in range(options.sessions):
            association.open(2 * session)
    else:
        first.settimeout(options.timeout)
        first.bind(("0.0.0.0", options.port))
        first.listen(1)
        print("listening", flush=True)
        association = Association(first.accept()[0], PASSIVE, make)
    found: dict[str, Any] = association.status()
    while not association.is_over(options.sessions):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not over after {options.timeout} s: {[x.report() for x in association.applications.values()]}")
        if association.shut_down:
            raise Mismatch("shut down before the sessions were over")
        association.move(0.5)
    if options.connect:
        association.shutdown()
    while not options.connect and not association.shut_down and time.monotonic() < deadline:
        association.move(0.5)
    return {**found, "indication": association.indication, "shut_down": association.shut_down, "refused": association.refused,
            "sessions": [x.report() for x in association.applications.values()]}


def main() -> int:
    parser = argparse.ArgumentParser()
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--listen", action="store_true")
    way.add_argument("--connect", metavar="HOST")
    parser.add_argument("--port", type=int, default=5043, help="of SCTP")
    parser.add_argument("--udp-port", type=int, default=0, help="of the peer, for --connect (default: as --port)")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rping", type=int, default=0, metavar="SIZE", help="rping in place of rounds; --rounds iterations")
    parser.add_argument("--faulty", action="store_true", help="--connect: the last session writes where it may not")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--ird", type=int, default=Offer.ird)
    parser.add_argument("--ord", type=int, default=Offer.ord)
    parser.add_argument("--plain", action="store_true", help="session control of RFC 5043 only; others are refused")
    parser.add_argument("--p2p", action="store_true", help="ask for A=1")
    parser.add_argument("--rtr", default="read", metavar="FORM[,FORM]", help="forms offered (--connect) or taken: read, write, send")
    parser.add_argument("--segment", type=int, default=Offer.segment, help="octets of a DDP segment, at most")
    parser.add_argument("--fragments", action="store_true", help="let SCTP fragment segments that are longer than a packet")
    parser.add_argument("--timeout", type=float, default=60.0)
    options = parser.parse_args()
    try:
        print(json.dumps(serve(options, time.monotonic() + options.timeout)), flush=True)
    except (Malformed, Mismatch, OSError, struct.error) as error:
        print(f"sctp_peer: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
