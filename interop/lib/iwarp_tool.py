"""Starts our `iwarp` command and reads its connection log.

Each process prints a line per connection event with key=value fields: `... established local= peer= role= rev= crc= ...`
and `... closed peer= end= tx_send=3/48 ...`, messages/octets. Only the words `established` and `closed` and the fields matter here. With
--debug no counter is left out for the line's length; those that are zero are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Sequence

from lib.errors import ScenarioFailure, check
from lib.processes import Child, Children

_FIELD = re.compile(r"(?<![\w-])([a-z][a-z0-9_]*)=(\"[^\"]*\"|\S+)")
_WAIT_CLOSED = 15.0
# What the two numbers of a field count. The octets of a Read come to the side that asked for it.
_COUNTERS = {"tx_send": ("tx_send", "tx_send_bytes"), "rx_send": ("rx_send", "rx_send_bytes"),
             "tx_write": ("tx_write", "tx_write_bytes"), "rx_write": ("rx_write", "rx_write_bytes"),
             "tx_read": ("tx_read", "rx_read_bytes"), "rx_read": ("rx_read", "tx_read_bytes"), "tx_wake": ("tx_wake",),
             "rx_early": ("rx_early", "rx_early_bytes")}


@dataclass
class Connection:
    """One RDMA connection: what was negotiated, and the counters it ended with (empty while it lives)."""

    negotiated: dict[str, str]
    counters: dict[str, int] = field(default_factory=dict)
    end: str | None = None

    def check_negotiated(self, who: str, expected: Mapping[str, str]) -> None:
        """Fail unless every expected parameter was negotiated."""
        wrong = [f"{key}={self.negotiated.get(key, '(absent)')} instead of {value}"
                 for key, value in expected.items() if self.negotiated.get(key) != value]
        check(not wrong, f"{who} negotiated {', '.join(wrong)}")

    def check_range(self, who: str, name: str, low: int, high: int) -> None:
        """Fail unless a negotiated number lies in low..high."""
        text = self.negotiated.get(name, "")
        check(text.isdigit() and low <= int(text) <= high,
              f"{who} negotiated {name}={text or '(absent)'}, expected {low}..{high}")


def parse_connections(log: str) -> list[Connection]:
    """RDMA connections in the order of their `established` lines. Of several between the same ends at a time, the oldest gets the first end:
    sums are right."""
    found: list[Connection] = []
    # A gateway has many connections to one server: their clients tell them apart.
    open_by_ends: dict[tuple[str | None, str | None], list[Connection]] = {}
    for line in log.splitlines():
        fields = {key: value.strip('"') for key, value in _FIELD.findall(line)}
        words = line.split()
        ends = fields.get("peer"), fields.get("tcp_peer")
        if "established" in words and "role" in fields:
            connection = Connection(fields)
            found.append(connection)
            open_by_ends.setdefault(ends, []).append(connection)
        elif "closed" in words and open_by_ends.get(ends) and "end" in fields:
            connection = open_by_ends[ends].pop(0)
            connection.end = fields["end"]
            connection.counters = _counters(fields)
    return found


def _counters(fields: Mapping[str, str]) -> dict[str, int]:
    counters: dict[str, int] = {}
    for key, names in _COUNTERS.items():
        values = fields.get(key, "").split("/") if key in fields else ["0"] * len(names)
        counters.update(zip(names, map(int, values)))
    return counters


def total(connections: Sequence[Connection]) -> dict[str, int]:
    """Counters summed over connections."""
    sums: dict[str, int] = {}
    for connection in connections:
        for name, value in connection.counters.items():
            sums[name] = sums.get(name, 0) + value
    return sums


class IwarpProcess:
    """A running `iwarp` command."""

    def __init__(self, binary: Path, arguments: Sequence[str], log: Path, children: Children) -> None:
        self.child: Child = children.start(f"iwarp {arguments[0]}", [str(binary), "--debug", *arguments], log)

    def connections(self) -> list[Connection]:
        """Connections so far, closed or not."""
        return parse_connections(self.child.log_text())

    def closed_connections(self, at_least: int = 1) -> list[Connection]:
        """All connections, once at least that many were established and every one has logged its end."""
        def ended(log: str) -> bool:
            connections = parse_connections(log)
            return len(connections) >= at_least and all(c.end is not None for c in connections)
        log = self.child.wait_log(ended, f"end of {at_least} connection(s) in its log", _WAIT_CLOSED) \
            if self.child.running() else self.child.log_text()
        if not ended(log):
            raise ScenarioFailure(f"{self.child.name} ended without logging the end of {at_least} connection(s)")
        return parse_connections(log)
