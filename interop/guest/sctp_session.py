"""One end of a DDP stream session over SCTP: RFC 5043 s6, RFC 6581 s7, and RDMAP on it: Sends, RDMA Writes, RDMA Reads.

It knows no socket: sctp_peer.py moves what next_message() gives, and hands in what has come. Anything that the documents do not
allow is a Malformed: this peer is there to find faults.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Protocol

import sctp_wire as wire
from sctp_wire import Control, EnhancedData, Malformed, ReadRequest, Segment

ACTIVE, PASSIVE = "active", "passive"
_NAMES = {wire.WRITE: "write", wire.READ_REQUEST: "read_request", wire.READ_RESPONSE: "read_response",
          wire.RDMAP_TERMINATE: "terminate", **{opcode: "send" for opcode in wire.SENDS}}


@dataclass(frozen=True)
class Offer:
    """What this end wants of a session, and is able to do."""

    ird: int = 8
    ord: int = 8
    enhanced: bool = True           # knows RFC 6581. A passive end that does not refuses what is enhanced
    p2p: bool = False               # active: asks for A=1. A passive end follows
    rtr: tuple[str, ...] = ("read",)    # forms that it offers or takes: send, write, read
    segment: int = 1400             # octets of a DDP segment, at most


class User(Protocol):
    """Hears of a session."""

    def established(self, private_data: bytes) -> None: ...
    def received(self, payload: bytes) -> None: ...
    def read_done(self, number: int) -> None: ...


@dataclass
class _Region:
    to: int
    memory: bytearray
    remote: bool        # the peer may write and read it


class Memory:
    """Buffers by STag."""

    def __init__(self) -> None:
        self._regions: dict[int, _Region] = {}

    def register(self, stag: int, to: int, memory: bytearray, *, remote: bool) -> None:
        self._regions[stag] = _Region(to, memory, remote)

    def place(self, stag: int, to: int, payload: bytes) -> None:
        if payload:
            region, at = self._find(stag, to, len(payload), remote=False)
            region.memory[at:at + len(payload)] = payload

    def fetch(self, stag: int, to: int, size: int) -> bytes:
        if not size:
            return b""
        region, at = self._find(stag, to, size, remote=True)
        return bytes(region.memory[at:at + size])

    def check_remote(self, stag: int, to: int, size: int) -> None:
        """Of an RDMA Write: nothing is checked of one without octets (RFC 5041 s5.2)."""
        if size:
            self._find(stag, to, size, remote=True)

    def _find(self, stag: int, to: int, size: int, *, remote: bool) -> tuple[_Region, int]:
        region = self._regions.get(stag)
        if region is None or remote and not region.remote or not 0 <= to - region.to <= len(region.memory) - size:
            raise Malformed(f"no access to {size} octets at {to:#x} of STag {stag:#x}")
        return region, to - region.to


@dataclass
class _Message:
    ppid: int
    body: bytes
    opcode: int | None = None       # of the last segment of a message: it is counted when it leaves
    terminates: bool = False        # a Session Terminate


@dataclass
class _Read:
    number: int
    stag: int
    to: int
    size: int
    got: int = 0


@dataclass
class Session:
    """Driving: receive() what has come, first_arrived() when it is held_back and SCTP says so, then next_message() and taken() while
    there is one."""

    role: str
    stream: int
    offer: Offer
    user: User
    private_data: bytes
    memory: Memory = field(default_factory=Memory)
    state: str = "starting"         # starting, open, ending (Terminate sent or due), over
    enhanced: bool = False
    p2p: bool = False
    rtr: str = "none"
    ird: int = 0
    ord: int = 0
    refused: bool = False           # passive: an Initiate that it does not know
    remote_terminate: tuple[int, int, int] | None = None    # layer, type, code of the peer's RDMAP Terminate
    tx: Counter[str] = field(default_factory=Counter)       # messages by operation; "segments", "read_bytes" as well
    rx: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.order = wire.Order()
        self._next_ssn = 0
        self._out: deque[_Message] = deque()
        self._posted: deque[Callable[[], bool]] = deque()
        self._reads: deque[_Read] = deque()
        self._read_numbers = 0
        self._reads_in = 0
        self._msn_out: Counter[int] = Counter()
        self._msn_in: Counter[int] = Counter()
        self._parts = bytearray()               # of the untagged message that comes
        self._parts_queue: int | None = None
        self._first_arrived = False             # this end's Initiate or Accept
        self._peer_over = False
        self._rtr_due = False                   # passive: the peer's first segment has to be one
        if self.role == ACTIVE:
            o = self.offer
            self.enhanced = o.enhanced
            self._control(Control(wire.INITIATE, self._flags(o.p2p, o.rtr, o.ird, o.ord) if o.enhanced else None, self.private_data))

    # What the application does.

    def send(self, payload: bytes) -> None:
        self._post(lambda: self._put_untagged(wire.SEND, payload))

    def write(self, stag: int, to: int, payload: bytes) -> None:
        self._post(lambda: self._put(wire.cut(wire.WRITE, payload, self.offer.segment, stag=stag, to=to)))

    def read(self, sink: tuple[int, int], source: tuple[int, int], size: int) -> int:
        """sink, source: STag and offset. The number of the Read, which read_done() tells."""
        self._read_numbers += 1
        number = self._read_numbers
        self._post(lambda: self._begin_read(_Read(number, *sink, size), source))
        return number

    def terminate(self) -> None:
        """The end of this direction, behind what was posted."""
        self._post(self._end)

    @property
    def idle(self) -> bool:
        """Nothing waits to leave, or for an answer."""
        return not (self._out or self._posted or self._reads)

    def report(self, *, complete: bool, rounds: int) -> dict[str, Any]:
        """What was agreed and counted, and what the application says."""
        return {"stream": self.stream, "role": self.role, "complete": complete, "state": self.state, "enhanced": self.enhanced,
                "p2p": self.p2p, "rtr": self.rtr, "ird": self.ird, "ord": self.ord, "rounds": rounds, "early": self.order.early,
                "waiting": self.order.waiting, "terminate": self.remote_terminate, "tx": dict(self.tx), "rx": dict(self.rx)}

    # What the driver does.

    def next_message(self) -> tuple[int, bytes] | None:
        """PPID and octets."""
        if not self._out or self.held_back:
            return None
        return self._out[0].ppid, wire.SEQUENCE.pack(self._next_ssn) + self._out[0].body

    def taken(self) -> None:
        """SCTP has taken it: only now it costs a DDP-SSN."""
        message = self._out.popleft()
        self._next_ssn = (self._next_ssn + 1) % wire.SEQUENCES
        self.tx["segments"] += message.ppid == wire.PPID_SEGMENT
        if message.opcode is not None:
            self.tx[_NAMES[message.opcode]] += 1
            if message.opcode == wire.READ_RESPONSE:
                self._reads_in -= 1
        if message.terminates and self._peer_over:
            self.state = "over"

    @property
    def held_back(self) -> bool:
        """A Terminate waits for the first message of this end to arrive, which it must not overtake (RFC 5043 s6.6)."""
        return bool(self._out) and self._out[0].terminates and not self._first_arrived

    def first_arrived(self) -> None:
        """The first message of this end is with the peer's SCTP."""
        self._first_arrived = True

    def receive(self, ppid: int, unordered: bool, message: bytes) -> None:
        if not unordered:
            raise Malformed("ordered DATA chunk")
        if ppid not in (wire.PPID_SEGMENT, wire.PPID_CONTROL):
            raise Malformed(f"PPID {ppid}")
        if len(message) < wire.SEQUENCE.size:
            raise Malformed("message without a DDP-SSN")
        if self.role == ACTIVE:
            self._first_arrived = True      # nobody speaks before the Initiate
        number, = wire.SEQUENCE.unpack_from(message)
        for kind, body in self.order.add(number, (ppid, message[wire.SEQUENCE.size:])):
            if self._peer_over:
                raise Malformed("message behind the peer's Terminate or Reject")
            if kind == wire.PPID_CONTROL:
                self._on_control(Control.parse(body))
            else:
                self._on_segment(Segment.parse(body))
        self._pump()

    # Session control.

    def _control(self, message: Control) -> None:
        self._out.append(_Message(wire.PPID_CONTROL, message.pack(), terminates=message.function == wire.TERMINATE))

    @staticmethod
    def _flags(p2p: bool, forms: tuple[str, ...], ird: int, ord_: int) -> EnhancedData:
        return EnhancedData(ird, ord_, p2p, *(p2p and form in forms for form in ("send", "write", "read")))

    def _on_control(self, message: Control) -> None:
        if message.function == wire.TERMINATE and (self.role == ACTIVE or self.state != "starting"):
            self._peer_over = True
            if self.state == "starting":
                self.state = "over"     # refused
            elif self.state == "ending":
                self.state = "over" if not self._out else self.state
            else:
                self._posted.clear()
                self._out = deque(m for m in self._out if m.ppid == wire.PPID_CONTROL)
                self.state = "ending"
                self._control(Control(wire.TERMINATE))
        elif self.state != "starting":
            raise Malformed(f"session control message {message.function} in a session")
        elif self.role == PASSIVE and message.function == wire.INITIATE:
            self._on_initiate(message)
        elif self.role == ACTIVE and message.function in (wire.ACCEPT, wire.REJECT):
            self._on_answer(message)
        else:
            raise Malformed(f"session control message {message.function} to the {self.role} end")

    def _on_initiate(self, message: Control) -> None:
        asked, o = message.data, self.offer
        if asked is not None and not o.enhanced:
            # RFC 5043 s6.4: a Terminate, in place of an answer, ends it at once.
            self.refused = self._peer_over = self._first_arrived = True
            self.state = "ending"
            return self._control(Control(wire.TERMINATE))
        self.enhanced, answer = asked is not None, None
        self.ird, self.ord = o.ird, o.ord
        if asked is not None:
            self.p2p = asked.p2p
            if not self.p2p and asked.forms():
                raise Malformed("RTR forms with A=0")
            self.ord = min(o.ord, asked.ird)
            common = [form for form in o.rtr if form in asked.forms()]
            if self.p2p and not common:
                raise Malformed(f"no RTR form of {o.rtr} among {asked.forms()}")
            self.rtr, self._rtr_due = (common[0], True) if self.p2p else ("none", False)
            answer = self._flags(self.p2p, (self.rtr,), self.ird, self.ord)
        self.state = "open"
        self._control(Control(wire.ACCEPT, answer, self.private_data))
        return self.user.established(message.private_data)

    def _on_answer(self, message: Control) -> None:
        o, said = self.offer, message.data
        if (said is not None) != self.enhanced:
            raise Malformed("an answer of the other kind")
        if message.function == wire.REJECT:
            self._peer_over, self.state = True, "over"
            return
        self.ird, self.ord = o.ird, o.ord
        if said is not None:
            if said.p2p != o.p2p or not said.p2p and said.forms():
                raise Malformed(f"asked for A={int(o.p2p)}, answered with {said}")
            if said.ord > o.ird:
                raise Malformed(f"the peer wants an ORD of {said.ord}, this end's IRD is {o.ird}")
            self.ord = min(o.ord, said.ird)
            self.p2p = said.p2p
        self.state = "open"
        if self.p2p:
            common = [form for form in o.rtr if said is not None and form in said.forms()]
            if not common:
                raise Malformed(f"of the RTR forms {o.rtr} none is among {said}")
            self.rtr = common[0]
            self._posted.appendleft(self._put_rtr)
        self.user.established(message.private_data)

    def _end(self) -> bool:
        if self.state == "open":
            self.state = "ending"
            self._control(Control(wire.TERMINATE))
        return True

    # What leaves.

    def _post(self, what: Callable[[], bool]) -> None:
        self._posted.append(what)
        self._pump()

    def _pump(self) -> None:
        while self._posted and self.state == "open" and not self._rtr_due and self._posted[0]():
            self._posted.popleft()

    def _put(self, segments: Iterable[Segment]) -> bool:
        for segment in segments:
            self._out.append(_Message(wire.PPID_SEGMENT, segment.pack(), segment.opcode if segment.last else None))
        return True

    def _put_untagged(self, opcode: int, payload: bytes) -> bool:
        queue = wire.queue_of(opcode)
        self._msn_out[queue] += 1
        return self._put(wire.cut(opcode, payload, self.offer.segment, msn=self._msn_out[queue]))

    def _put_rtr(self) -> bool:
        if self.rtr == "send":
            return self._put_untagged(wire.SEND, b"")
        if self.rtr == "write":
            return self._put(wire.cut(wire.WRITE, b"", self.offer.segment))
        return self._begin_read(_Read(0, 0, 0, 0), (0, 0))

    def _begin_read(self, read: _Read, source: tuple[int, int]) -> bool:
        if len(self._reads) >= self.ord:
            return False
        self._reads.append(read)
        self.tx["read_bytes"] += read.size
        return self._put_untagged(wire.READ_REQUEST, ReadRequest(read.stag, read.to, read.size, *source).pack())

    # What has come.

    def _on_segment(self, segment: Segment) -> None:
        if self.state == "starting":
            raise Malformed("a segment before there is a session")
        self._first_arrived = True          # nobody sends segments before the Accept
        if self._rtr_due:
            self._check_rtr(segment)
        self.rx["segments"] += 1
        self.rx[_NAMES[segment.opcode]] += segment.last
        if segment.opcode == wire.WRITE:
            self.memory.check_remote(segment.stag, segment.to, len(segment.payload))
            self.memory.place(segment.stag, segment.to, segment.payload)
        elif segment.opcode == wire.READ_RESPONSE:
            self._on_response(segment)
        else:
            self._on_untagged(segment)

    def _check_rtr(self, segment: Segment) -> None:
        empty = not segment.payload if self.rtr != "read" else not ReadRequest.parse(segment.payload).size
        wanted = {"send": wire.SEND, "write": wire.WRITE, "read": wire.READ_REQUEST}[self.rtr]
        if segment.opcode != wanted or not segment.last or not empty:
            raise Malformed(f"no RTR by {self.rtr}, but {segment}")
        self._rtr_due = False
        self.rx["rtr"] += 1

    def _on_untagged(self, segment: Segment) -> None:
        if self._parts_queue is None:
            self._msn_in[segment.queue] += 1
            self._parts_queue = segment.queue
        if segment.queue != self._parts_queue or segment.msn != self._msn_in[segment.queue] or segment.offset != len(self._parts):
            raise Malformed(f"queue {segment.queue}, MSN {segment.msn}, offset {segment.offset}: due are queue {self._parts_queue}, "
                            f"{self._msn_in[segment.queue]}, {len(self._parts)}")
        self._parts += segment.payload
        if not segment.last:
            return
        message, self._parts, self._parts_queue = bytes(self._parts), bytearray(), None
        if segment.opcode == wire.RDMAP_TERMINATE:
            self.remote_terminate = wire.parse_terminate(message)
        elif segment.opcode == wire.READ_REQUEST:
            self._on_read_request(ReadRequest.parse(message))
        elif segment.opcode != wire.SEND:
            raise Malformed(f"opcode {segment.opcode}, which nobody has asked for")
        elif message or self.rtr != "send" or segment.msn != 1 or self.role == ACTIVE:      # else it was the RTR
            self.user.received(message)

    def _on_read_request(self, request: ReadRequest) -> None:
        self._reads_in += 1
        if self._reads_in > max(self.ird, 1):
            raise Malformed(f"{self._reads_in} Reads at a time; the IRD is {self.ird}")
        self.rx["read_bytes"] += request.size
        octets = self.memory.fetch(request.source_stag, request.source_to, request.size)
        self._put(wire.cut(wire.READ_RESPONSE, octets, self.offer.segment, stag=request.sink_stag, to=request.sink_to))

    def _on_response(self, segment: Segment) -> None:
        read = self._reads[0] if self._reads else None
        if read is None or segment.stag != read.stag or segment.to != read.to + read.got:
            raise Malformed(f"Read Response for {segment.to:#x} of STag {segment.stag:#x}: due is {read}")
        read.got += len(segment.payload)
        if read.got > read.size or segment.last != (read.got == read.size):
            raise Malformed(f"Read Response of {read.got} octets, last={segment.last}, for {read.size}")
        self.memory.place(segment.stag, segment.to, segment.payload)
        if segment.last:
            self._reads.popleft()
            if read.number:     # 0: the RTR
                self.user.read_done(read.number)
