"""Runs scenarios: one guest per variant, a fresh one after a failure, the capture of each boot read at its end."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Sequence

from lib.capture import check_capture
from lib.errors import NotAvailable, ScenarioFailure, SetupError
from lib.guest import Guest
from lib.kernel_nfsd import MOUNT_PORT, RDMA_PORT, TCP_PORT
from lib.processes import Children
from lib.scenario import Boot, Context, Scenario, Services, rping_ports
from lib.siw_build import BARE, Peer

_NFS_PORTS = (TCP_PORT, MOUNT_PORT, RDMA_PORT)


@dataclass
class Runner:
    """Holds the state of one run. `directory` is emptied of whatever earlier runs left in it."""

    peer: Peer
    binary: Path
    directory: Path
    keep: bool
    repeat: int = 1     # of each scenario, in a row
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)    # what could not be run here, and why

    def run(self, variants: Sequence[str], scenarios: Sequence[Scenario]) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        services_directory = self.directory / "services"
        services_directory.mkdir(parents=True)
        services = Services(services_directory)
        try:
            for variant in variants:
                chosen = [s for s in scenarios if s.runs_in(variant)]
                self._run_variant(variant, chosen, services)
        finally:
            services.stop()
        if not self.keep and not self.failed:
            shutil.rmtree(self.directory)
        else:
            shutil.rmtree(services_directory / "export", ignore_errors=True)

    def _run_variant(self, variant: str, scenarios: Sequence[Scenario], services: Services) -> None:
        boot: Boot | None = None
        boots = 0
        children = Children()
        try:
            for scenario, number in ((s, n) for s in scenarios for n in range(1, self.repeat + 1)):
                if boot is None:
                    boots += 1
                    boot = self._boot(variant, self.directory / f"{variant}-{boots}", children)
                    if boot is None:
                        return
                if not self._run_scenario(scenario, variant, boot, services, number):
                    # What a failed scenario left in the guest must not decide the next one.
                    self._end_boot(variant, boot)
                    boot = None
            if boot is not None:
                self._end_boot(variant, boot)
        finally:
            children.stop_all()

    def _boot(self, variant: str, directory: Path, children: Children) -> Boot | None:
        directory.mkdir(parents=True)
        boots: list[Boot] = []

        def start() -> str:
            boots.append(Boot(self._guest(variant, directory, children), directory, rping_ports=list(rping_ports(self.repeat))))
            return ""
        if not self._timed("boot", variant, start, [directory], count=False):
            return None
        return boots[0]

    def _guest(self, variant: str, directory: Path, children: Children) -> Guest:
        guest = Guest(self.peer, variant, directory, children, (*rping_ports(self.repeat), *_NFS_PORTS))
        if variant != BARE:
            guest.load_siw()
        return guest

    def _run_scenario(self, scenario: Scenario, variant: str, boot: Boot, services: Services, number: int) -> bool:
        log_directory = boot.directory / (scenario.name if number == 1 else f"{scenario.name}-{number}")
        log_directory.mkdir()
        children = Children()
        context = Context(variant, boot, services, self.binary, children, log_directory,
                          lambda: self._guest(variant, log_directory, children),
                          lambda root, ports: Guest(self.peer, BARE, log_directory, children, ports, root))

        def work() -> str:
            note = scenario.run(context) or ""
            boot.traffic += context.traffic
            return note
        try:
            return self._timed(scenario.name, variant, work,
                               [log_directory, boot.guest.console, boot.guest.command_log, boot.guest.capture])
        finally:
            children.stop_all()

    def _end_boot(self, variant: str, boot: Boot) -> None:
        boot.guest.stop()
        if boot.traffic:
            self._timed("capture", variant, lambda: check_capture(boot.guest.capture, boot.traffic),
                        [boot.guest.capture.with_name("frames.pcap"), boot.guest.capture])

    def _timed(self, name: str, variant: str, work: Callable[[], str], evidence: Sequence[Path], *,
               count: bool = True) -> bool:
        """Run one step and print its summary line; on failure the reason and where to look."""
        start = time.monotonic()
        reason, note, missing = "", "", ""
        try:
            note = work()
        except NotAvailable as absence:
            missing = str(absence)
        except (ScenarioFailure, SetupError) as failure:
            reason = str(failure)
        except (OSError, KeyError, ValueError, IndexError) as error:
            reason = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - start
        verdict = "FAIL" if reason else "SKIP" if missing else "PASS" if count else "    "
        print(f"{verdict} {seconds:6.1f} s  {name:<16} [{variant}]{'  ' + note if note else ''}", flush=True)
        if reason:
            self.failed += 1
            print(f"       {reason}")
            for path in evidence:
                print(f"       see {os.path.relpath(path)}", flush=True)
        elif missing:
            self.skipped.append(f"{name}: {missing}")
            print(f"       {missing}", flush=True)
        elif count:
            self.passed += 1
        return not reason
