"""iwarp-gateway.service in a guest that systemd runs, and what it tells: systemctl, the journal, metrics."""

from __future__ import annotations

import re
import urllib.request

from lib.errors import check, check_equal
from lib.guest import Guest, Outcome

UNIT = "iwarp-gateway.service"
CONFIGURATION = "/etc/iwarp/gateway.toml"
_SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Service:
    """The installed unit; whether it runs is another matter."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest

    def systemctl(self, verb: str, timeout: float = 60) -> Outcome:
        """`systemctl VERB` for the unit; what came of it is the caller's to judge."""
        return self.guest.run(f"systemctl --no-pager --full {verb} {UNIT}", timeout)

    def must(self, verb: str, timeout: float = 60) -> None:
        done = self.systemctl(verb, timeout)
        check(done.status == 0, f"systemctl {verb} fails with status {done.status}: {done.output}\n{self.journal()[-2000:]}")

    def check_properties(self, when: str, **expected: str) -> None:
        """What `systemctl show` says, by name."""
        shown = self.guest.must(f"systemctl show --property={','.join(expected)} {UNIT}")
        check_equal(f"the unit {when}", dict(line.split("=", 1) for line in shown.splitlines()), expected)

    def main_pid(self) -> int:
        return int(self.guest.must(f"systemctl show --property=MainPID --value {UNIT}"))

    def journal(self) -> str:
        """Messages of the unit and about it."""
        return self.guest.must(f"journalctl --unit={UNIT} --output=cat --no-pager")

    def wait_journal(self, text: str, timeout: float, times: int = 1) -> None:
        """Wait until so many lines hold the text."""
        seen = f"journalctl --unit={UNIT} --output=cat --no-pager | grep --count --fixed-strings -e '{text}'"
        done = self.guest.run(f"until [ $({seen}) -ge {times} ]; do sleep 0.2; done", timeout + 1)
        check(done.status == 0, f"the journal has no '{text}'")

    def edit(self, *sed: str) -> None:
        """Change the configuration file as a user does, by commands of sed."""
        self.guest.must("sed -i " + " ".join(f"-e '{command}'" for command in sed) + f" {CONFIGURATION}")

    def append(self, text: str) -> None:
        self.guest.must(f"cat >> {CONFIGURATION}", stdin=text)


def read_metrics(port: int, listener: str) -> dict[str, float]:
    """A listener's samples as Prometheus gets them from 127.0.0.1, by name, and the values of other labels behind it:
    rdma_bytes_total.write.out. Sums of histograms' buckets are left out."""
    # A proxy of this machine has nothing to do with it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        return parse_metrics(page.read().decode(), listener)


def parse_metrics(page: str, listener: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, text, value in _SAMPLE.findall(page):
        labels = dict(_LABEL.findall(text))
        if labels.pop("listener", None) == listener and "le" not in labels:
            labels.pop("direction")
            found[".".join([name.removeprefix("iwarp_gateway_"), *labels.values()])] = float(value)
    return found
