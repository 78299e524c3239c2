"""Tests of the peer of DDP over SCTP that runs in guests, without any SCTP: its octets against the vectors of tests/sctp and tests/ddp, and
two of it over a network that delivers in any order."""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "guest"))

import sctp_wire as wire  # noqa: E402
from lib.sctp import cut, wanted  # noqa: E402
from sctp_exchange import SLOT_BYTES, Exchange, Faulty, Mismatch, Round, pattern  # noqa: E402
from sctp_peer import encapsulation  # noqa: E402
from sctp_rping import Rping, ping  # noqa: E402
from sctp_session import ACTIVE, PASSIVE, Offer  # noqa: E402
from sctp_wire import Control, EnhancedData, Malformed, Order, ReadRequest, Segment  # noqa: E402

# As in tests/sctp/session_control_test.cc, behind the DDP-SSN.
CONTROL = (
    ("0001", Control(wire.INITIATE)),
    ("0001 0102030405", Control(wire.INITIATE, None, b"\1\2\3\4\5")),
    ("0002 aa", Control(wire.ACCEPT, None, b"\xaa")),
    ("0003 bbcc", Control(wire.REJECT, None, b"\xbb\xcc")),
    ("0004", Control(wire.TERMINATE)),
    ("0005 8020 c010", Control(wire.INITIATE, EnhancedData(32, 16, True, False, True, True))),
    ("0005 3fff 3fff 0102", Control(wire.INITIATE, EnhancedData(16383, 16383), b"\1\2")),
    ("0006 c001 4002 00", Control(wire.ACCEPT, EnhancedData(1, 2, True, True, False, True), b"\0")),
    ("0007 8000 8000", Control(wire.REJECT, EnhancedData(0, 0, True, False, True, False))),
)
# As in tests/ddp/segment_header_test.cc, but for RDMAP's octets, which mean something here.
SEGMENTS = (
    ("0141 11223344 00000001 aabbccdd 01020304", Segment(wire.READ_REQUEST, False, b"", invalidate=0x11223344, queue=1, msn=0xAABBCCDD,
                                                         offset=0x01020304)),
    ("8142 01020304 1112131415161718", Segment(wire.READ_RESPONSE, False, b"", stag=0x01020304, to=0x1112131415161718)),
    ("4143 00000000 00000000 00000001 00000000 6869", Segment(wire.SEND, True, b"hi", msn=1)),
    ("c140 00000005 0000000000001000 ff", Segment(wire.WRITE, True, b"\xff", stag=5, to=0x1000)),
    ("4147 00000000 00000002 00000001 00000000", Segment(wire.RDMAP_TERMINATE, True, b"", queue=2, msn=1)),
)


class Octets(unittest.TestCase):
    def test_session_control(self) -> None:
        for octets, message in CONTROL:
            self.assertEqual(message.pack(), bytes.fromhex(octets))
            self.assertEqual(Control.parse(bytes.fromhex(octets)), message)
        for bad in ("", "00", "0000", "0008 00000000", "ffff", "0004 00", "0005 8020c0", "0001" + "00" * 513, "0006" + "00" * 513):
            with self.assertRaises(Malformed, msg=bad):
                Control.parse(bytes.fromhex(bad))

    def test_segments(self) -> None:
        for octets, segment in SEGMENTS:
            self.assertEqual(segment.pack(), bytes.fromhex(octets))
            self.assertEqual(Segment.parse(bytes.fromhex(octets)), segment)
        header = "4143 00000000 00000000 00000001 00000000"
        for bad in ("", "41", header[:-2], "4143 00000000 00000001 00000001 00000000", "4243" + header[4:], "4183" + header[4:],
                    "4153" + header[4:], "4543" + header[4:], "c143" + header[4:], "4140" + header[4:], "4148" + header[4:]):
            with self.assertRaises(Malformed, msg=bad):
                Segment.parse(bytes.fromhex(bad))

    def test_messages_are_cut(self) -> None:
        sends = list(wire.cut(wire.SEND, bytes(range(25)), 18 + 10, msn=7))
        self.assertEqual([(s.offset, len(s.payload), s.last, s.msn, s.queue) for s in sends],
                         [(0, 10, False, 7, 0), (10, 10, False, 7, 0), (20, 5, True, 7, 0)])
        writes = list(wire.cut(wire.WRITE, bytes(20), 14 + 10, stag=1, to=100))
        self.assertEqual([(s.to, len(s.payload), s.last) for s in writes], [(100, 10, False), (110, 10, True)])
        self.assertEqual([(s.last, s.payload) for s in wire.cut(wire.WRITE, b"", 100, stag=1, to=1)], [(True, b"")])

    def test_read_requests_and_terminates(self) -> None:
        request = ReadRequest(1, 2, 3, 4, 5)
        self.assertEqual(request.pack().hex(), "00000001" "0000000000000002" "00000003" "00000004" "0000000000000005")
        self.assertEqual(ReadRequest.parse(request.pack()), request)
        self.assertEqual(wire.parse_terminate(bytes.fromhex("1100c000")), (1, 1, 0))
        for parse in (ReadRequest.parse, wire.parse_terminate):
            with self.assertRaises(Malformed):
                parse(bytes(3))

    def test_order_of_the_ddp_ssn(self) -> None:
        order = Order()
        self.assertEqual([list(order.add(n, n)) for n in (1, 3, 0, 2)], [[], [], [0, 1], [2, 3]])
        self.assertEqual((order.early, order.waiting), (2, 0))
        for again in (3, 40000):
            with self.assertRaises(Malformed):
                list(order.add(again, again))
        for n in range(4, wire.SEQUENCES + 2):
            self.assertEqual(list(order.add(n % wire.SEQUENCES, n)), [n])

    def test_option_of_linux(self) -> None:
        octets = encapsulation(9899)
        self.assertEqual((len(octets), struct.unpack_from(">H", octets, 136)[0]), (144, 9899))


class Pair:
    """Two ends, and what is under way to each."""

    def __init__(self, active: Offer, passive: Offer, rounds: tuple[int, int] = (9, 7), seed: int = 1, rping: int = 0) -> None:
        self.ends: tuple[Any, Any] = (Exchange(ACTIVE, 0, active, rounds[0]), Exchange(PASSIVE, 0, passive, rounds[1]))
        if rping:
            self.ends = (Rping(ACTIVE, 0, active, rounds[0], rping), Rping(PASSIVE, 0, passive, 0, 0))
        self.under_way: list[list[tuple[int, bytes]]] = [[], []]
        self._random = random.Random(seed)

    def give(self) -> None:
        """What leaves each end, up to 20 messages under way."""
        for i, end in enumerate(self.ends):
            while len(self.under_way[1 - i]) < 20 and (message := end.session.next_message()):
                self.under_way[1 - i].append(message)
                end.session.taken()

    def run(self) -> list[dict[str, Any]]:
        while True:
            self.give()
            ways = [i for i in (0, 1) if self.under_way[i]]
            if ways:
                i = self._random.choice(ways)
                ppid, octets = self.under_way[i].pop(self._random.randrange(len(self.under_way[i])))
                self.ends[i].session.receive(ppid, True, octets)
                continue
            held = [end for end in self.ends if end.session.held_back]
            if not held:
                return [end.report() for end in self.ends]
            for end in held:
                end.session.first_arrived()


class Sessions(unittest.TestCase):
    TAKES = Offer(ird=8, ord=3, rtr=("write", "read", "send"), segment=700)

    def test_rounds_of_both_ends_in_any_order(self) -> None:
        for seed in range(4):
            active, passive = Pair(Offer(), self.TAKES, seed=seed).run()
            for report, rounds in ((active, 7), (passive, 9)):
                self.assertEqual((report["complete"], report["state"], report["rounds"], report["waiting"]), (True, "over", rounds, 0))
                self.assertGreater(report["early"], 10)
            self.assertEqual({**active["tx"], "rtr": 0}, {**passive["rx"], "rtr": 0})
            self.assertEqual((active["ird"], active["ord"], passive["ird"], passive["ord"]), (8, 8, 8, 3))
            self.assertEqual(passive["tx"]["send"], 7 + 9 + 1)

    def test_rtr_in_each_form_and_none(self) -> None:
        for form in ("read", "write", "send"):
            active, passive = Pair(Offer(p2p=True, rtr=(form,)), self.TAKES, (2, 2)).run()
            self.assertEqual((active["rtr"], passive["rtr"], passive["rx"]["rtr"], active["state"]), (form, form, 1, "over"))
        active, passive = Pair(Offer(enhanced=False, ird=3), self.TAKES, (2, 2)).run()
        self.assertEqual((active["enhanced"], passive["enhanced"], passive["rtr"], passive["state"]), (False, False, "none", "over"))

    def test_rping(self) -> None:
        for size in (26, 64, 65535):
            for report in Pair(Offer(), self.TAKES, (3, 0), rping=size).run():
                self.assertEqual((report["complete"], report["state"], report["rounds"]), (True, "over", 3))
        self.assertEqual(ping(0, 26), b"rdma-ping-0: ABCDEFGHIJKL\0")
        self.assertEqual(ping(57, 32), b"rdma-ping-57: zABCDEFGHIJKLMNOP\0")

    def test_an_end_without_rfc_6581_refuses_what_is_enhanced(self) -> None:
        active, passive = Pair(Offer(), Offer(enhanced=False)).run()
        self.assertEqual((passive["state"], passive["complete"], passive["tx"]["segments"]), ("over", False, 0))
        self.assertEqual(active["complete"], False)

    def test_one_that_breaks_a_rule_hears_of_it(self) -> None:
        faulty = Faulty(0, Offer(enhanced=False))
        session, hello = faulty.session, Exchange(PASSIVE, 0, Offer(), 0).session.private_data
        self.assertIsNotNone(session.next_message())
        session.taken()
        terminate = Segment(wire.RDMAP_TERMINATE, True, bytes.fromhex("1100c000"), queue=2, msn=1)
        came = ((17, Control(wire.ACCEPT, None, hello).pack()), (16, terminate.pack()), (17, Control(wire.TERMINATE).pack()))
        for number, (ppid, body) in enumerate(came):
            session.receive(ppid, True, wire.SEQUENCE.pack(number) + body)
            if number == 0:
                _, write = session.next_message()   # type: ignore[misc]
                self.assertNotEqual(Segment.parse(write[2:]).stag, struct.unpack_from(">I", hello, 8)[0])
                session.taken()
        self.assertEqual(session.next_message(), (17, b"\0\2\0\4"))
        session.taken()
        self.assertEqual((session.state, faulty.report()["complete"]), ("over", True))

    def test_no_rounds_at_all(self) -> None:
        self.assertEqual([r["state"] for r in Pair(Offer(), self.TAKES, (0, 0)).run()], ["over", "over"])

    def test_a_terminate_waits_for_the_first_message(self) -> None:
        pair = Pair(Offer(), self.TAKES, (0, 0))
        passive = pair.ends[1].session
        pair.give()
        passive.receive(*self.first(pair))
        pair.give()
        passive.terminate()
        while passive.next_message():
            passive.taken()
        self.assertTrue(passive.held_back)
        passive.first_arrived()
        self.assertEqual(passive.next_message()[1][2:], b"\0\4")    # type: ignore[index]

    def test_what_is_lost_or_changed_is_seen(self) -> None:
        for change in (lambda octets: octets[:-1] + bytes([octets[-1] ^ 1]), lambda octets: octets[:6] + b"\xff" + octets[7:]):
            pair = Pair(Offer(), self.TAKES, (3, 0))
            with self.assertRaises((Malformed, Mismatch)):
                for _ in range(1000):
                    pair.give()
                    for i in (0, 1):
                        for ppid, octets in pair.under_way[i]:
                            changes = ppid == wire.PPID_SEGMENT and len(octets) > 100
                            pair.ends[i].session.receive(ppid, True, change(octets) if changes else octets)
                        pair.under_way[i].clear()

    def test_what_no_document_allows(self) -> None:
        write = Segment(wire.WRITE, True, b"x", stag=1, to=0).pack()
        late = Segment(wire.SEND, True, b"", msn=2).pack()
        response = Segment(wire.READ_RESPONSE, True, b"", stag=1, to=0).pack()
        two = Control(wire.INITIATE).pack()
        for ppid, unordered, body in ((16, True, write), (16, True, late), (16, True, response), (17, True, two), (18, True, write),
                                      (16, False, write), (16, True, b"")):
            pair = Pair(Offer(), self.TAKES)
            pair.give()
            pair.ends[1].session.receive(*self.first(pair))
            with self.assertRaises(Malformed, msg=body.hex()):
                pair.ends[1].session.receive(ppid, unordered, b"\0\1" + body)

    @staticmethod
    def first(pair: Pair) -> tuple[int, bool, bytes]:
        ppid, octets = pair.under_way[1].pop(0)
        return ppid, True, octets


class Exchanges(unittest.TestCase):
    def test_patterns_differ(self) -> None:
        self.assertEqual(pattern(0, 8).hex(), "c67e816b4bfbe2fb")   # as in tests/sctp_cm/exchange_test.cc
        self.assertEqual(len(pattern(3, SLOT_BYTES)), SLOT_BYTES)
        self.assertEqual(len({pattern(seed, 64) for seed in range(1000)}), 1000)
        self.assertEqual(pattern(7, 100)[10:], pattern(7, 110)[10:100])

    def test_rounds_of_all_sizes(self) -> None:
        self.assertEqual((Round(0, 0).written, Round(0, 0).text, Round(0, 0).read[1]), (b"", b"", 0))
        sizes = [len(Round(1, n).written) for n in range(20)]
        self.assertTrue(max(sizes) > 60000 and len(set(sizes)) == 20)
        self.assertTrue(all(at + size <= SLOT_BYTES for at, size in (Round(0, n).read for n in range(100))))


class Captures(unittest.TestCase):
    @staticmethod
    def packet(udp: tuple[int, int], sctp: tuple[int, int], protocol: int = 17) -> bytes:
        octets = bytes(12) + b"\x08\0" + b"\x45" + bytes(8) + bytes([protocol]) + bytes(10) + struct.pack(">HHHH", *udp, 20, 0) + \
            struct.pack(">HH", *sctp) + bytes(8)
        return struct.pack("<IIII", 0, 0, len(octets), len(octets)) + octets

    def test_packets_of_one_association(self) -> None:
        first, mine = self.packet((9899, 1), (5, 7)), self.packet((2, 9899), (7, 6))
        others = self.packet((9899, 2), (6, 8)) + self.packet((1, 2), (7, 6)) + self.packet((9899, 1), (7, 6), 6)
        head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65536, 1)
        with tempfile.TemporaryDirectory() as directory:
            whole, part = Path(directory) / "whole", Path(directory) / "part"
            whole.write_bytes(head + first + others + mine + first[:-1])
            self.assertEqual((cut(whole, 0, part, 7), part.read_bytes()), (2, head + first + mine))
            self.assertEqual((cut(whole, len(head + first), part, 7), part.read_bytes()), (1, head + mine))

    def test_what_a_capture_must_hold(self) -> None:
        want = wanted({"sessions": Pair(Offer(), Sessions.TAKES, (3, 2)).run()[:1], "refused": [0]})
        self.assertEqual((want.terminates, want.messages[("peer", "write")], want.messages[("ours", "write")]), (3, 3, 2))
        self.assertEqual(want.messages[("ours", "read_response")], 3)


if __name__ == "__main__":
    unittest.main()
