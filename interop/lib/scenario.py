"""What a scenario is, and what it is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Sequence

from lib.capture import Traffic
from lib.ganesha import Ganesha
from lib.guest import Guest
from lib.iwarp_tool import IwarpProcess
from lib.kernel_nfsd import KernelNfsd
from lib.nfs_files import make_tree
from lib.processes import Children
from lib.siw_build import BARE

# How often a scenario may run in a boot, at most: so many of its ports are forwarded.
MOST_REPEATS = 20


def rping_ports(repeat: int) -> range:
    """Guest TCP ports that a boot forwards, for scenarios that run so often: one per rping case, as a port is not reused within a boot."""
    return range(7174, 7174 + 16 * repeat)


# Variants for what proves the same in all of them.
ONCE = ("default",)


@dataclass
class Services:
    """Servers that live longer than a scenario, started when first wanted."""

    directory: Path
    _ganesha: Ganesha | None = None

    @property
    def ganesha(self) -> Ganesha:
        """nfs-ganesha on the host, shared by all variants of a run."""
        if self._ganesha is None:
            root = self.directory / "export"
            make_tree(root)
            self._ganesha = Ganesha(self.directory, root)
            self._ganesha.start()
        return self._ganesha

    def stop(self) -> None:
        if self._ganesha is not None:
            self._ganesha.stop()


@dataclass
class Boot:
    """One boot of a guest, and what its capture must contain."""

    guest: Guest
    directory: Path
    traffic: list[Traffic] = field(default_factory=list)
    rping_ports: list[int] = field(default_factory=lambda: list(rping_ports(1)))
    _nfsd: KernelNfsd | None = None

    @property
    def nfsd(self) -> KernelNfsd:
        """The guest's kernel NFS server."""
        if self._nfsd is None:
            self._nfsd = KernelNfsd(self.guest)
        return self._nfsd


@dataclass
class Context:
    """Everything a scenario may use. `children` and `log_directory` are its own; both go when it has passed."""

    variant: str
    boot: Boot
    services: Services
    binary: Path
    children: Children
    log_directory: Path
    boot_another: Callable[[], Guest]       # a second guest like the first, until the scenario ends
    # The same with the root in a directory, which has systemd, and TCP ports that are forwarded.
    boot_debian: Callable[[Path, Sequence[int]], Guest]
    traffic: list[Traffic] = field(default_factory=list)
    _started: int = 0

    @property
    def guest(self) -> Guest:
        return self.boot.guest

    @property
    def peer_wants_crc(self) -> bool:
        return self.variant in ("crc", "rtr-crc")

    @property
    def peer_revision(self) -> int:
        """MPA revision of the kernel's Requests."""
        return 1 if self.variant == "v1" else 2

    @property
    def peer_wants_rtr(self) -> bool:
        return self.variant in ("rtr", "rtr-crc")

    def iwarp(self, *arguments: str) -> IwarpProcess:
        """Start our command; its output goes to a log of its own."""
        self._started += 1
        log = self.log_directory / f"iwarp-{self._started}-{arguments[0]}.log"
        return IwarpProcess(self.binary, arguments, log, self.children)

    def take_rping_port(self) -> int:
        """A guest port that nothing has listened on in this boot."""
        return self.boot.rping_ports.pop(0)


# Does the work of a scenario; may return what else is worth saying when it has passed.
Run = Callable[[Context], "str | None"]


@dataclass(frozen=True)
class Scenario:
    name: str
    summary: str
    run: Run
    needs_iwarp: bool = True
    on_demand: bool = False     # runs only when named: proves the peers without us
    revision_1: bool = False    # runs in the variant v1 too, where the peer initiates with MPA revision 1
    variants: Sequence[str] | None = None   # runs in these only

    def runs_in(self, variant: str) -> bool:
        if self.variants is not None:
            return variant in self.variants
        if variant in (BARE, "strict"):
            return False
        return self.on_demand or variant != "v1" or self.revision_1


_REGISTRY: list[Scenario] = []


def scenario(name: str, summary: str, *, needs_iwarp: bool = True, on_demand: bool = False,
             revision_1: bool = False, variants: Sequence[str] | None = None) -> Callable[[Run], Run]:
    """Register a function as a scenario; the run order is the order of registration."""
    def register(run: Run) -> Run:
        _REGISTRY.append(Scenario(name, summary, run, needs_iwarp, on_demand, revision_1, variants))
        return run
    return register


def all_scenarios() -> list[Scenario]:
    import scenarios  # noqa: F401  registers them

    return list(_REGISTRY)
