"""Tests of the runner's own parts that need no guest: python3 -m unittest discover -s interop/tests"""

from __future__ import annotations

import contextlib
import io
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from typing import cast

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib.capture import Traffic, _is_known_malformed, _is_rpc_only, by_port, messages_of  # noqa: E402
from lib.cli import check_something_runs  # noqa: E402
from lib.debian_root import make_debian  # noqa: E402
from lib.errors import NotAvailable, ScenarioFailure, SetupError  # noqa: E402
from lib.guest import Guest  # noqa: E402
from lib.iwarp_tool import parse_connections, total  # noqa: E402
from lib.processes import Children, free_port  # noqa: E402
from lib.reframe import reframe  # noqa: E402
from lib.runner import Runner  # noqa: E402
from lib.scenario import Boot, Scenario, Services, rping_ports  # noqa: E402
from lib.service import parse_metrics  # noqa: E402
from lib.siw_build import Peer, choose_kernel  # noqa: E402

ran: list[tuple[str, int]] = []
ESTABLISHED = "info established local=127.0.0.1:1 peer=127.0.0.1:2 role=initiator rev=2 enhanced=1 crc=1 p2p=1 rtr=write ird=1 ord=1"
CLOSED = 'info closed peer=127.0.0.1:2 end="server closed" why="a b" tx_write=2/9 tx_read=5/80 rx_read=7/60 tx_send=3/48 rx_send=4/64'


class ConnectionLog(unittest.TestCase):
    def test_pairs_established_with_closed(self) -> None:
        (connection,) = parse_connections(f"noise\n12:00 {ESTABLISHED}\nother=1 line\n12:01 {CLOSED}\n")
        connection.check_negotiated("we", {"role": "initiator", "crc": "1", "rtr": "write"})
        self.assertEqual((connection.end, connection.counters["tx_send_bytes"]), ("server closed", 48))
        self.assertEqual((connection.counters["tx_read"], connection.counters["rx_read_bytes"]), (5, 80))
        self.assertEqual((connection.counters["rx_write"], connection.counters["tx_wake"]), (0, 0))

    def test_other_lines_with_the_word_end_nothing(self) -> None:
        (connection,) = parse_connections(f"{ESTABLISHED}\nserver closed peer=127.0.0.1:2 reason=peer_closed\n")
        self.assertIsNone(connection.end)

    def test_open_connection_has_no_end(self) -> None:
        (connection,) = parse_connections(ESTABLISHED)
        self.assertIsNone(connection.end)

    def test_same_peer_twice_is_two_connections(self) -> None:
        connections = parse_connections("\n".join([ESTABLISHED, CLOSED, ESTABLISHED, CLOSED]))
        self.assertEqual(total(connections)["tx_send"], 6)

    def test_clients_tell_connections_to_one_server_apart(self) -> None:
        lines = [f"{line} tcp_peer=127.0.0.1:{client}" for line in (ESTABLISHED, CLOSED) for client in (3, 4)]
        self.assertEqual([c.end for c in parse_connections("\n".join(lines))], ["server closed"] * 2)

    def test_differences_are_named(self) -> None:
        (connection,) = parse_connections(ESTABLISHED)
        with self.assertRaisesRegex(ScenarioFailure, "crc=1 instead of 0, x=.absent. instead of 1"):
            connection.check_negotiated("we", {"crc": "0", "x": "1"})
        with self.assertRaisesRegex(ScenarioFailure, "ord=1, expected 2..3"):
            connection.check_range("we", "ord", 2, 3)

    def test_rtr_that_we_sent_is_added(self) -> None:
        octets = "octets asked for by Read"
        expected = {("ours", "send"): 3, ("ours", "write"): 3, ("peer", "send"): 4, ("peer", "write"): 0,
                    ("ours", "read_request"): 5, ("peer", "read"): 5, ("ours", octets): 80,
                    ("peer", "read_request"): 7, ("ours", "read"): 7, ("peer", octets): 60}
        self.assertEqual(messages_of(parse_connections(f"{ESTABLISHED}\n{CLOSED}")), expected)
        read = messages_of(parse_connections(f"{ESTABLISHED}\n{CLOSED}".replace("rtr=write", "rtr=read")))
        self.assertEqual(read, {**expected, ("ours", "write"): 2, ("ours", "read_request"): 6, ("peer", "read"): 6})


class SharedPorts(unittest.TestCase):
    def test_traffic_of_one_port_is_added_up(self) -> None:
        first = Traffic("a", 1, 2, {("ours", "send"): 3, ("peer", "send"): 0}, False)
        second = Traffic("b", 1, 5, {("ours", "send"): 7, ("peer", "send"): 0}, True, 20)
        other = Traffic("c", 2, 1, {}, False)
        self.assertEqual(by_port([first, other, second]), {
            1: Traffic("a, b", 1, 7, {("ours", "send"): 10, ("peer", "send"): 0}, True, 20), 2: other})


class KernelChoice(unittest.TestCase):
    def choose(self, images: list[str], headers: list[str], sources: list[str]) -> tuple[str, str]:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            files = [f"boot/vmlinuz-{r}" for r in images] + [f"lib/modules/{r}/modules.dep" for r in images]
            files += [f"usr/src/linux-headers-{r}/Makefile" for r in headers] + [f"usr/src/{s}" for s in sources]
            for file in files:
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).touch()
            release, source = choose_kernel(root)
            return release, source.name

    def test_newest_with_headers_and_source(self) -> None:
        images = ["6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-11-amd64", "6.2.0-1-amd64", "6.1.0-12-cloud-amd64",
                  "6.1.0-13-rt-amd64", "6.12.9+bpo-amd64"]
        headers = [image for image in images if image != "6.1.0-11-amd64"]
        sources = ["linux-source-6.1.tar.xz", "linux-source-6.12.tar.xz"]
        self.assertEqual(self.choose(images, headers, sources), ("6.1.0-10-amd64", "linux-source-6.1.tar.xz"))

    def test_the_error_names_the_cure(self) -> None:
        for images, headers, why in (([], [], "there is none"), (["6.1.0-9-amd64"], [], "lacks linux-headers-6.1.0-9-amd64"),
                                     (["6.1.0-9-amd64"], ["6.1.0-9-amd64"], "lacks linux-source-6.1"),
                                     (["6.1.0-9-rt-amd64"], ["6.1.0-9-rt-amd64"], "realtime")):
            with self.assertRaisesRegex(SetupError, f"{why}.*apt-get install linux-image-amd64"):
                self.choose(images, headers, [])


class Choice(unittest.TestCase):
    def test_a_choice_that_runs_nothing_is_an_error(self) -> None:
        scenarios = [Scenario(name, "", lambda context: None, variants=("default",)) for name in ("one", "other")]
        check_something_runs(scenarios, ["crc", "default"])
        with self.assertRaisesRegex(SetupError, "v1, crc none .* one, other"):
            check_something_runs(scenarios, ["v1", "crc"])

    def test_a_guest_without_siw_runs_only_what_names_it(self) -> None:
        scenarios = [Scenario("any", "", lambda context: None), Scenario("demanded", "", lambda context: None, on_demand=True),
                     Scenario("bare", "", lambda context: None, on_demand=True, variants=("bare",))]
        self.assertEqual([[s.runs_in(variant) for s in scenarios] for variant in ("bare", "default")],
                         [[False, False, True], [True, True, False]])


class Repeats(unittest.TestCase):
    class WithoutGuests(Runner):
        boots = 0

        def _boot(self, variant: str, directory: Path, children: Children) -> Boot:
            self.boots += 1
            return Boot(cast(Guest, None), directory)

        def _end_boot(self, variant: str, boot: Boot) -> None:
            pass

        def _run_scenario(self, scenario: Scenario, variant: str, boot: Boot, services: Services, number: int) -> bool:
            ran.append((scenario.name, number))
            return number != 2

    def test_each_scenario_runs_so_often_and_a_failure_takes_another_guest(self) -> None:
        ran.clear()
        with tempfile.TemporaryDirectory() as directory:
            runner = self.WithoutGuests(Peer("", Path(), Path()), Path(), Path(directory) / "run", False, repeat=3)
            runner.run(["default"], [Scenario(name, "", lambda context: None) for name in ("one", "other")])
        self.assertEqual(ran, [("one", 1), ("one", 2), ("one", 3), ("other", 1), ("other", 2), ("other", 3)])
        self.assertEqual(runner.boots, 3)

    def test_each_time_has_ports_of_its_own(self) -> None:
        self.assertEqual(len(rping_ports(20)), 20 * len(rping_ports(1)))


class Skipped(unittest.TestCase):
    def test_what_cannot_be_run_is_neither_passed_nor_failed(self) -> None:
        def missing() -> str:
            raise NotAvailable("no network")
        runner = Runner(Peer("", Path(), Path()), Path(), Path(), False)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertTrue(runner._timed("service", "default", missing, []))
        self.assertEqual((runner.passed, runner.failed, runner.skipped), (0, 0, ["service: no network"]))
        self.assertRegex(out.getvalue(), r"^SKIP .*service .*\n +no network\n$")

    def test_packages_are_not_made_of_a_build_for_debugging(self) -> None:
        with tempfile.TemporaryDirectory() as build:
            (Path(build) / "CMakeCache.txt").write_text("A:STRING=b\nCMAKE_BUILD_TYPE:STRING=Debug\n")
            with self.assertRaisesRegex(NotAvailable, "release build"):
                make_debian(Path(build) / "debian", Path(build))


class Metrics(unittest.TestCase):
    def test_samples_of_one_listener(self) -> None:
        page = """# TYPE iwarp_gateway_calls_total counter
iwarp_build_info{version="1"} 1
iwarp_gateway_calls_total{listener="a",direction="rdma-to-tcp",program="nfs"} 7
iwarp_gateway_calls_total{listener="b",direction="rdma-to-tcp",program="nfs"} 8
iwarp_gateway_rdma_bytes_total{listener="a",direction="rdma-to-tcp",operation="write",way="out"} 1e3
iwarp_gateway_latency_seconds_bucket{listener="a",direction="rdma-to-tcp",program="nfs",le="+Inf"} 7
"""
        self.assertEqual(parse_metrics(page, "a"), {"calls_total.nfs": 7, "rdma_bytes_total.write.out": 1000})


class FreePort(unittest.TestCase):
    def test_nothing_is_given_twice(self) -> None:
        ports = [free_port() for _ in range(500)]
        self.assertEqual(len(ports), len(set(ports)))


class KnownMalformed(unittest.TestCase):
    def row(self, **changes: str) -> dict[str, str]:
        row = {"_ws.malformed": "[Malformed Packet: NFS]", "rpc.msgtyp": "1", "nfs.opcode": "53,22,25", "nfs.procedure_v3": ""}
        return {**row, **changes}

    def test_only_read_replies_of_nfs(self) -> None:
        self.assertTrue(_is_known_malformed(self.row()))
        self.assertTrue(_is_known_malformed(self.row(**{"nfs.opcode": "", "nfs.procedure_v3": "6"})))
        for change in ({"_ws.malformed": "[Malformed Packet: RPCoRDMA]"}, {"rpc.msgtyp": "0"}, {"nfs.opcode": "53,22,26"}):
            self.assertFalse(_is_known_malformed(self.row(**change)))


STARTUP = b"MPA ID Rep Frame" + b"\x10\x02\x00\x04" + b"\x00\x01\x00\x01"
FPDUS = [struct.pack(">H", size) + bytes([0xC1, 0x43]) + bytes(size - 2) + bytes(-(size + 2) % 4) + b"crc!" for size in (18, 19, 20, 1400)]


def packet(sequence: int, payload: bytes, flags: int = 0x10, ports: tuple[int, int] = (7174, 40000), acknowledged: int = 1) -> bytes:
    addresses = [b"\x0a\0\2\2", b"\x0a\0\2\x0f"]
    source, destination = addresses if ports[0] < ports[1] else reversed(addresses)
    network = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0) + source + destination
    transport = struct.pack(">HHIIBBHHH", *ports, sequence & 0xFFFFFFFF, acknowledged, 0x50, flags, 1000, 0, 0)
    data = bytes(12) + b"\x08\x00" + network + transport + payload
    return struct.pack("<IIII", 1, 2, len(data), len(data)) + data


class MalformedOnlyAsRpc(unittest.TestCase):
    """tshark takes any Send for RPC-over-RDMA: of other programs that says nothing."""

    def test_other_layers_count(self) -> None:
        rpc = "[Malformed Packet: RPCoRDMA]"
        self.assertTrue(_is_rpc_only(rpc))
        self.assertTrue(_is_rpc_only(f"{rpc},{rpc}"))
        self.assertFalse(_is_rpc_only("[Malformed Packet: IWARP_DDP_RDMAP]"))
        self.assertFalse(_is_rpc_only(f"{rpc},[Malformed Packet: IWARP_MPA]"))


class Reframe(unittest.TestCase):
    def rewrite(self, packets: list[bytes]) -> tuple[list[bytes], list[str]]:
        """The packets of the rewritten capture from IPv4 on, and the problems found."""
        with tempfile.TemporaryDirectory() as directory:
            source, target = Path(directory) / "in", Path(directory) / "out"
            source.write_bytes(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(packets))
            problems = reframe(source, target, {7174})
            data, offset, rewritten = target.read_bytes(), 24, []
            while offset < len(data):
                size = struct.unpack_from("<I", data, offset + 8)[0]
                rewritten.append(data[offset + 16 + 14:offset + 16 + size])
                offset += 16 + size
        return rewritten, problems

    def cut(self, packets: list[bytes]) -> tuple[list[bytes], list[str]]:
        """Payloads of the rewritten capture that are not empty, and the problems found."""
        rewritten, problems = self.rewrite(packets)
        return [datagram[40:] for datagram in rewritten if datagram[40:]], problems

    def test_every_segment_size_gives_the_same_frames(self) -> None:
        stream = STARTUP + b"".join(FPDUS)
        start = 0xFFFFFFF0     # the sequence number wraps within the stream
        for size in range(1, 200):
            packets = [packet(start - 1, b"", 0x02)]
            packets += [packet(start + at, stream[at:at + size]) for at in range(0, len(stream), size)]
            self.assertEqual(self.cut(packets), ([STARTUP, *FPDUS], []), f"segments of {size}")

    def test_duplicates_and_disorder_do_not_matter(self) -> None:
        stream = STARTUP + b"".join(FPDUS)
        parts = [packet(100 + at, stream[at:at + 50]) for at in range(0, len(stream), 50)]
        packets = [packet(99, b"", 0x02), parts[0], *reversed(parts[1:]), parts[3], parts[0]]
        self.assertEqual(self.cut(packets), ([STARTUP, *FPDUS], []))

    def test_a_connection_with_the_ports_of_an_earlier_one_gets_others(self) -> None:
        there, back = (40000, 7174), (7174, 40000)
        one = [packet(0, b"", 0x02, there), packet(0, b"", 0x12, back), packet(1, STARTUP, ports=there), packet(1, STARTUP, ports=back)]
        rewritten, problems = self.rewrite(one + one)
        self.assertEqual(problems, [])
        ports = [struct.unpack_from(">HH", datagram, 20) for datagram in rewritten]
        self.assertEqual(ports, [there, back, there, back, (61000, 7174), (7174, 61000), (61000, 7174), (7174, 61000)])

    def test_a_stream_that_ends_within_a_frame_is_reported(self) -> None:
        payloads, problems = self.cut([packet(0, b"", 0x02), packet(1, STARTUP + FPDUS[0] + b"\x00")])
        self.assertEqual(payloads, [STARTUP, FPDUS[0]])
        self.assertEqual(problems, ["port 7174 to 40000 ends within a frame, 1 octets into it"])

    def test_lost_octets_are_reported(self) -> None:
        _, problems = self.cut([packet(0, b"", 0x02), packet(1, STARTUP), packet(100, FPDUS[0])])
        self.assertEqual(problems, ["port 7174 to 40000 misses octets in the capture"])

    def test_no_packet_runs_ahead_of_the_frames(self) -> None:
        """tshark takes a frame for a retransmission after a packet, or an acknowledgement, of a later sequence number."""
        stream = STARTUP + FPDUS[0]
        cut = len(STARTUP) + 5
        there, back = (7174, 40000), (40000, 7174)
        rewritten, problems = self.rewrite([
            packet(0, b"", 0x02, there), packet(0, b"", 0x02, back), packet(1, stream[:cut], 0x10, there),
            packet(1 + cut, b"", 0x10, there), packet(1, STARTUP, 0x10, back, 1 + cut), packet(1 + cut, stream[cut:], 0x10, there)])
        numbers = [struct.unpack_from(">HHII", datagram, 20) for datagram in rewritten[2:]]
        framed = 1 + len(STARTUP)
        self.assertEqual(numbers, [(*there, 1, 1), (*there, framed, 1), (*back, 1, framed), (*there, framed, 1)])
        self.assertEqual(problems, [])

    def test_other_ports_are_left_out(self) -> None:
        self.assertEqual(self.cut([packet(0, b"", 0x02, (1, 2)), packet(1, STARTUP, 0x10, (1, 2))]), ([], []))


if __name__ == "__main__":
    unittest.main()
