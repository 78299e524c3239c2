"""Command line of interop/run."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import IO, Callable, Sequence

from lib.errors import BudgetSpent, SetupError
from lib.runner import Runner
from lib.scenario import MOST_REPEATS, Scenario, all_scenarios
from lib.siw_build import GUESTS, build_peer

_ROOT = Path(__file__).resolve().parent.parent.parent
_PROGRAMS = ("qemu-system-x86_64", "make", "gcc", "patch", "dkms", "cpio", "xz", "rping", "rdma", "mount.nfs", "rpc.nfsd", "rpc.mountd",
             "rpcbind", "ganesha.nfsd", "nfs-ls", "nfs-cp", "nfs-cat", "tshark")
_EPILOG = """\
examples:
  interop/run                                  everything, all variants
  interop/run --list                           what there is
  interop/run rping-server rping-client        only these, then the check of their captures
  interop/run mount-v4.1 --variant crc,rtr-crc --keep
  interop/run baseline-rping baseline-mount    the peers without us: is the environment sound?
  interop/run --variant default --repeat 20 verbs-server verbs-client
  interop/run --build-dir build/asan rping-server

The peer is Linux with siw, in QEMU without KVM; interop/packages names the Debian packages it takes. Exit status: 0 all
passed, 1 a scenario failed or time ran out, 2 wrong usage or a missing piece, 77 none could be run here, 130 interrupted.
"""


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    scenarios = all_scenarios()
    if options.list:
        for scenario in scenarios:
            print(f"{scenario.name:<16} {scenario.summary}{'  (only when named)' if scenario.on_demand else ''}")
        return 0
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    try:
        chosen = _choose(scenarios, options.scenario)
        variants = _variants(options.variant)
        check_something_runs(chosen, variants)
        binary = (options.build_dir / "bin" / "iwarp").resolve()
        _check_environment(binary, any(s.needs_iwarp for s in chosen))
        work = (options.work_dir or options.build_dir / "interop").resolve()
        work.mkdir(parents=True, exist_ok=True)
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.alarm(options.budget * 60)
        with _lock(work):
            return _run(work, binary, chosen, variants, options)
    except SetupError as error:
        print(f"interop/run: {error}", file=sys.stderr)
        return 2
    except BudgetSpent:
        print(f"interop/run: stopped after {options.budget} minutes (--budget), not everything was run; everything it started "
              "has been stopped. Each scenario takes seconds to a minute on an idle machine of two cores.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interop/run: interrupted; everything it started has been stopped", file=sys.stderr)
        return 130


def _run(work: Path, binary: Path, chosen: Sequence[Scenario], variants: Sequence[str], options: argparse.Namespace) -> int:
    peer = build_peer(work, lambda text: print(text, flush=True))
    runner = Runner(peer, binary, work / "run", options.keep, options.repeat)
    runner.run(variants, chosen)
    if options.keep or runner.failed:
        print(f"logs and captures: {os.path.relpath(work / 'run')}")
    # Read by scripts/test, which says at its end what could not be run.
    (work / "skipped").write_text("".join(f"interop/run {' '.join(why.split())}\n" for why in runner.skipped))
    print(f"{runner.passed} passed, {runner.failed} failed" + (f", {len(runner.skipped)} skipped" if runner.skipped else ""))
    return 1 if runner.failed else 0 if runner.passed else 77


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="interop/run", description="Runs our stack against the Linux kernel's iWARP, NFS/RDMA client and server.",
        epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="*", help="scenarios to run (default: all but those that are only run when named)")
    parser.add_argument("--list", action="store_true", help="list the scenarios and exit")
    parser.add_argument("--keep", action="store_true", help="keep logs and captures even when everything passes")
    parser.add_argument("--repeat", type=_count(f"times, 1 to {MOST_REPEATS}", MOST_REPEATS), default=1, metavar="N",
                        help=f"run each scenario N times in a row, at most {MOST_REPEATS}, in one boot while it passes; for those of rping, verbs "
                             "and rsockets")
    parser.add_argument("--variant", default=",".join(GUESTS), metavar="V[,V...]",
                        help="siw variants: %(default)s (default: all; bare has no siw)")
    parser.add_argument("--budget", type=_count("minutes above 0"), default=60, metavar="MINUTES",
                        help="stop, and fail, when everything together takes longer (default: %(default)s)")
    parser.add_argument("--build-dir", type=Path, default=_ROOT / "build" / "release", metavar="DIR",
                        help="where bin/iwarp is (default: build/release)")
    parser.add_argument("--work-dir", type=Path, metavar="DIR",
                        help="where the peer is built and logs are kept (default: interop/ in the build directory)")
    return parser.parse_args(arguments)


def _count(what: str, most: int = sys.maxsize) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdigit() or not 0 < int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number of {what}")
        return int(text)
    return parse


def _choose(scenarios: Sequence[Scenario], names: Sequence[str]) -> list[Scenario]:
    if not names:
        return [s for s in scenarios if not s.on_demand]
    by_name = {s.name: s for s in scenarios}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise SetupError(f"no scenario named {', '.join(unknown)}; there are: {', '.join(by_name)}")
    return [s for s in scenarios if s.name in names]


def _variants(text: str) -> list[str]:
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in GUESTS]
    if unknown or not chosen:
        raise SetupError(f"no variant named {', '.join(unknown) or '(none given)'}; there are: {', '.join(GUESTS)}")
    return chosen


def check_something_runs(chosen: Sequence[Scenario], variants: Sequence[str]) -> None:
    """Or a run that does nothing would pass."""
    if not any(s.runs_in(variant) for s in chosen for variant in variants):
        raise SetupError(f"in the variants {', '.join(variants)} none of these scenarios runs: {', '.join(s.name for s in chosen)}")


def _check_environment(binary: Path, needs_binary: bool) -> None:
    # Servers live in sbin, which an unprivileged PATH leaves out.
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise SetupError(f"missing programs: {', '.join(missing)}; install the packages named in interop/packages")
    if needs_binary and not os.access(binary, os.X_OK):
        raise SetupError(f"{os.path.relpath(binary)} is missing; build the project or give another --build-dir")


def _lock(work: Path) -> IO[str]:
    lock = open(work / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise SetupError(f"another run uses {os.path.relpath(work)}; give another --work-dir") from None
    return lock


def _out_of_time(signum: int, frame: object) -> None:
    raise BudgetSpent


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt
