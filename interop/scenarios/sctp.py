"""DDP over SCTP against the SCTP of the guest's kernel: rounds of RDMA Writes, Sends and RDMA Reads both ways at a time, each verified by
both ends. The guest's end is guest/sctp_peer.py, the host's tests/sctp_cm/exchange_peer.cc."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any, Sequence

from lib.errors import check, check_equal
from lib.guest import HOST_ADDRESS
from lib.iwarp_tool import parse_connections
from lib.processes import Child, free_port
from lib.scenario import ONCE, Context, scenario
from lib.sctp import BadNetwork, check_trace, check_tshark, cut, prepare, report_of, start_ours, start_peer, start_rping, wait_peer_listens, wanted

_TIMEOUT = 120
_FIRST_PORT = 5043      # of SCTP in the guest; each case has another


@dataclass(frozen=True)
class Case:
    """Flags of the ends beside those that all have, and what must be negotiated with them."""

    name: str
    ours: Sequence[str] = ()
    peer: Sequence[str] = ()
    rtr: str = "none"
    enhanced: bool = True
    refused: int = 0            # sessions before it that the passive end refuses
    sessions: int = 1
    faulty: bool = False        # the last of them breaks a rule, and ends alone
    rounds: int = 20


# The active end asks, the passive end follows.
_CASES = (
    Case("enhanced", ("--ird", "3", "--ord", "9"), ("--ird", "4", "--ord", "6")),
    Case("rtr-read", rtr="read"),
    Case("rtr-write", rtr="write"),
    Case("plain", enhanced=False),
    # Messages that SCTP of the kernel has to fragment, and several sessions.
    Case("fragments", peer=("--segment", "5000", "--fragments")),
    Case("sessions", sessions=3, rounds=10),
)
_FAULTY = Case("faulty", peer=("--faulty",), sessions=3, faulty=True)
# One that knows RFC 5043 only: iwarp begins anew, with a plain Initiate.
_FALLBACK = Case("fallback", peer=("--plain",), enhanced=False, refused=1)
_RPING = Case("rping", rounds=50)
_LOSSY = Case("lossy", sessions=2, rounds=30)


@scenario("sctp-server", "the kernel's SCTP -> sctp_exchange: Writes, Sends, Reads each way, enhanced and plain sessions, each RTR",
          variants=ONCE)
def kernel_to_ours(context: Context) -> str:
    return _summary([_serve(context, case) for case in (*_CASES, _FAULTY)])


@scenario("sctp-client", "sctp_exchange -> the kernel's SCTP: the same", variants=ONCE)
def ours_to_kernel(context: Context) -> str:
    return _summary([_connect(context, case) for case in (*_CASES, _FALLBACK)])


@scenario("sctp-rping", "iwarp rping --llp sctp in both roles, with rping on the kernel's SCTP: 50 iterations of 64 and 65535 bytes",
          variants=ONCE, on_demand=True)
def rping(context: Context) -> str:
    prepare(context.guest)
    return _summary([run(context, size) for size in (64, 65535) for run in (_pings_of_guest, _pings_of_ours)])


@scenario("sctp-lossy", "both ways with 1 % loss and reordering: nothing lost, nothing out of order", variants=ONCE)
def lossy(context: Context) -> str:
    prepare(context.guest)
    with BadNetwork(context.guest) as network:
        reports = [_serve(context, _LOSSY), _connect(context, _LOSSY)]
        lost = network.lost()
    check(min(lost) > 0, f"the bad network has lost {lost} packets of the two directions: it proves nothing")
    early = [session["early"] for report in reports for session in report["sessions"]]
    check(min(early) > 0, f"{early} messages came early: nothing was out of order below")
    placed = [report["early_here"] for report in reports]
    check(min(placed) > 0, f"iwarp has placed {placed} segments before others in front of them: no way of the two had any")
    return f"{_summary(reports)}; {sum(lost)} packets lost, {sum(early)} messages early at the guest, {sum(placed)} segments placed early here"


def _serve(context: Context, case: Case) -> dict[str, Any]:
    """The guest connects."""
    prepare(context.guest)
    start, port = context.guest.capture.stat().st_size, free_port(socket.SOCK_DGRAM)
    ours = start_ours(context.binary, context.children, context.log_directory / f"ours-{case.name}-server.log",
                      ["--listen", "127.0.0.1", "--port", str(port), *_common(case), *case.ours])
    ours.wait_log(lambda text: "listening" in text, "word that it listens", 10)
    flags = ["--p2p", "--rtr", case.rtr] if case.rtr != "none" else [] if case.enhanced else ["--plain"]
    peer = start_peer(context.guest, ["--connect", HOST_ADDRESS, "--port", str(port), *_common(case), *flags, *case.peer])
    report = report_of(peer, _TIMEOUT + 10)
    _check_packets(context, f"{case.name}-server", start, port, report, ours_connects=False)
    report["early_here"] = _check(case, ours, report, "responder")
    return report


def _connect(context: Context, case: Case) -> dict[str, Any]:
    """The guest listens."""
    prepare(context.guest)
    start, sctp_port = context.guest.capture.stat().st_size, _FIRST_PORT + len(list(context.log_directory.glob("*.pcap")))
    peer = start_peer(context.guest, ["--listen", "--port", str(sctp_port), "--rtr", "read,write", *_common(case), *case.peer])
    wait_peer_listens(context.guest, sctp_port)
    flags = ["--rtr", case.rtr] if case.rtr != "none" else [] if case.enhanced or case.refused else ["--plain"]
    ours = start_ours(context.binary, context.children, context.log_directory / f"ours-{case.name}-client.log",
                      ["--connect", "127.0.0.1", "--port", str(context.guest.sctp_udp_port), "--sctp-port", str(sctp_port),
                       *_common(case), *flags, *case.ours])
    report = report_of(peer, _TIMEOUT + 10)
    check(report["shut_down"], "sctp_exchange has not shut the association down")
    _check_packets(context, f"{case.name}-client", start, sctp_port, report, ours_connects=True)
    report["early_here"] = _check(case, ours, report, "initiator")
    return report


def _pings_of_guest(context: Context, size: int) -> dict[str, Any]:
    start, port = context.guest.capture.stat().st_size, free_port(socket.SOCK_DGRAM)
    ours = start_rping(context.binary, context.children, context.log_directory / f"rping-server-{size}.log",
                       ["-s", "-a", "127.0.0.1", "-p", str(port), "-V"])
    ours.wait_log(lambda text: "listening" in text, "word that it listens", 10)
    peer = start_peer(context.guest, ["--connect", HOST_ADDRESS, "--port", str(port), "--rping", str(size), *_common(_RPING)])
    return _pinged(context, f"rping-server-{size}", ours, report_of(peer, _TIMEOUT + 10), start, port)


def _pings_of_ours(context: Context, size: int) -> dict[str, Any]:
    # The SCTP port of `iwarp rping -c` is that of UDP, which is another one in the guest.
    start, port = context.guest.capture.stat().st_size, context.guest.sctp_udp_port
    peer = start_peer(context.guest, ["--listen", "--port", str(port), "--rping", str(size), *_common(_RPING)])
    wait_peer_listens(context.guest, port)
    ours = start_rping(context.binary, context.children, context.log_directory / f"rping-client-{size}.log",
                       ["-c", "-a", "127.0.0.1", "-p", str(port), "-S", str(size), "-C", str(_RPING.rounds), "-V"])
    return _pinged(context, f"rping-client-{size}", ours, report_of(peer, _TIMEOUT + 10), start, port)


def _pinged(context: Context, name: str, ours: Child, report: dict[str, Any], start: int, port: int) -> dict[str, Any]:
    check_equal("exit status of iwarp rping", ours.wait_exit(30), 0)
    (session,) = report["sessions"]
    check_equal("the guest's end", (session["complete"], session["state"], session["rounds"]), (True, "over", _RPING.rounds))
    (connection,) = parse_connections(ours.log_text())
    connection.check_negotiated("iwarp rping", {"llp": "sctp", "enhanced": "1"})
    check_equal("Writes of the server", (session["tx"] if session["role"] == "passive" else session["rx"])["write"], _RPING.rounds)
    _check_packets(context, name, start, port, report, ours_connects=session["role"] == "passive")
    return report


def _common(case: Case) -> list[str]:
    return ["--sessions", str(case.sessions), "--rounds", str(case.rounds), "--timeout", str(_TIMEOUT)]


def _check(case: Case, ours: Child, report: dict[str, Any], role: str) -> int:
    """That both ends have done all, and say the same of it. How many segments iwarp has placed before those in front of them came."""
    check_equal("exit status of sctp_exchange", ours.wait_exit(30), 0)
    check_equal("adaptation indication that the kernel saw", report["indication"], 1)
    check_equal("streams", (report["streams_in"], report["streams_out"]), (16, 16))
    check_equal("sessions that the guest has refused", len(report["refused"]), case.refused)
    connections = parse_connections(ours.log_text())
    check_equal("sessions of either end", (len(connections), len(report["sessions"])), (case.sessions, case.sessions))
    if case.faulty:
        faulty = report["sessions"].pop()
        check_equal("the session that breaks a rule", (faulty["state"], faulty["terminate"], faulty["complete"]), ("over", [1, 1, 0], True))
        check_equal("its end", [c.end for c in connections].count("terminated"), 1)
        connections = [c for c in connections if c.end != "terminated"]
    for session in report["sessions"]:
        done = {"complete": True, "state": "over", "rounds": case.rounds, "waiting": 0, "terminate": None}
        check_equal("the end of a session in the guest", {key: session[key] for key in done}, done)
        check_equal("what the guest agreed on", (session["enhanced"], session["rtr"]), (case.enhanced, case.rtr))
    for connection in connections:
        check_equal("end", connection.end, "done")
        connection.check_negotiated("sctp_exchange", {"role": role, "llp": "sctp", "enhanced": str(int(case.enhanced)), "rtr": case.rtr,
                                                      "p2p": str(int(case.rtr != "none"))})
        if case.enhanced:
            _check_depths(connection.negotiated, report["sessions"][0])
    # An RTR that was received counts, one that was sent does not.
    for word, operation in (("write", "write"), ("send", "send"), ("read", "read_request")):
        rtr = case.sessions * (case.rtr == word)
        for way, name, more in (("rx", "tx", 0), ("tx", "rx", rtr if role == "initiator" else 0)):
            check_equal(f"{way}_{word} of sctp_exchange", sum(c.counters[f"{way}_{word}"] for c in connections) + more,
                        sum(session[name].get(operation, 0) for session in report["sessions"]))
    return sum(c.counters["rx_early"] for c in connections)


def _check_depths(ours: dict[str, str], peer: dict[str, Any]) -> None:
    """RFC 6581 s9.1: nobody has more Reads outstanding than the other end admits."""
    ird, ord_ = int(ours["ird"]), int(ours["ord"])
    check(0 < ord_ <= peer["ird"] and 0 < peer["ord"] <= ird, f"IRD {ird} and ORD {ord_} here, {peer['ird']} and {peer['ord']} there")


def _check_packets(context: Context, name: str, start: int, port: int, report: dict[str, Any], *, ours_connects: bool) -> None:
    pcap = context.log_directory / f"{name}.pcap"
    cut(context.guest.capture, start, pcap, port)
    want = wanted(report)
    check_trace(context.binary, pcap, want, ours_connects=ours_connects)
    report["frames"] = check_tshark(pcap, want)


def _summary(reports: Sequence[dict[str, Any]]) -> str:
    sessions = [session for report in reports for session in report["sessions"]]
    messages = sum(count for session in sessions for name in ("tx", "rx") for key, count in session[name].items()
                   if key in ("send", "write", "read_request", "read_response"))
    return f"{len(sessions)} sessions, {messages} messages, {sum(report['frames'] for report in reports)} packets"
