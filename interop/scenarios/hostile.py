"""The cases of tests/hostile against the kernel, on demand: what siw and the kernel's NFS server do where ours reacts as listed.

Nothing is judged: the outcome is docs/HOSTILE.md, which this scenario writes. A kernel that serves nobody after a case gets a
successor.
"""

from __future__ import annotations

from pathlib import Path

from lib.errors import check
from lib.guest import GUEST_ADDRESS, Guest
from lib.kernel_nfsd import KernelNfsd
from lib.processes import run_tool
from lib.scenario import RPING_PORTS, Context, scenario

_ROOT = Path(__file__).resolve().parents[2]
_CASES = _ROOT / "tests" / "hostile" / "cases.tsv"
_PAGE = _ROOT / "docs" / "HOSTILE.md"
_TIMEOUT = 900.0
_NOBODY_IS_SERVED = 3     # exit status of hostile_peer

_HEAD = """# What hostile peers meet

For each rule that a peer can break on the wire: what our side does about it, as `tests/hostile` proves, and what Linux {release} does:
siw with rdma-core's `rping -s -P` (roles mpa responder, rdma receiver) and the kernel's NFS server over siw (rpc responder). Words:
[tests/hostile/README.md](../tests/hostile/README.md). Where the two differ, the note says why ours is as it is, or the requirement does.
Where Linux serves nobody any more after a case, a kernel BUG at iwcm.c (cm_work_handler) or an rping that hangs is behind it; the
next case gets a fresh guest. Rows that need a victim configured for the test were not put to Linux: their cell is empty. Written by `interop/run --variant default
hostile`; do not edit.

| Requirement | Role | Broken by | Ours | Linux | Note |
|---|---|---|---|---|---|
"""


@scenario("hostile", "tests/hostile against siw and the kernel's NFS server; writes docs/HOSTILE.md", on_demand=True)
def hostile_peers(context: Context) -> str:
    boots, seen = 0, {}
    for role, serve in (("rdma", _serve_rping), ("rpcrdma", _serve_nfs)):
        report = context.log_directory / f"{role}.tsv"
        report.touch()
        while True:
            boots += 1
            guest = context.boot_another()
            status = _attack(context, serve(guest), role, report)
            guest.kill()
            if status != _NOBODY_IS_SERVED:
                break
        rows = [line.split("\t") for line in report.read_text(encoding="utf-8").splitlines()]
        check(len(rows) > 0, f"hostile_peer reported nothing about {role}")
        seen |= {(row[1], row[2]): row[4] for row in rows}
    release = context.guest.must("uname -r").strip()
    _PAGE.write_text(_HEAD.format(release=release) + _table(seen), encoding="utf-8")
    return f"{boots} guests"


def _serve_rping(guest: Guest) -> int:
    """The host's port of a server that comes back when a case has ended it."""
    port = RPING_PORTS[0]
    guest.spawn(f"while true; do rping -s -P -a {GUEST_ADDRESS} -p {port} -S 64; sleep 0.2; done")
    guest.wait_listening(port, 15, rdma=True)
    return guest.forwards[port]


def _serve_nfs(guest: Guest) -> int:
    return KernelNfsd(guest).rdma_port


def _attack(context: Context, port: int, role: str, report: Path) -> int:
    """Goes on behind the last row of the report. Exit status of hostile_peer."""
    done = run_tool([str(context.binary.parent / "hostile_peer"), "--target", f"127.0.0.1:{port}", "--role", role,
                     "--settle", "300", "--resume", "--report", str(report)], _TIMEOUT, log=context.log_directory / f"{role}.log")
    check(done.returncode in (0, 1, _NOBODY_IS_SERVED), f"hostile_peer ended with status {done.returncode}")
    return done.returncode


def _table(seen: dict[tuple[str, str], str]) -> str:
    lines = []
    for line in _CASES.read_text(encoding="utf-8").splitlines():
        requirement, role, script, expected, note = line.split("\t")
        if role == "gateway":
            continue
        theirs = seen.get((role, script), "")
        theirs = "" if theirs.startswith("skipped: ") else theirs
        lines.append(f"| {requirement} | {role} | {script} | {expected} | {theirs} | {'' if note == '-' else note} |\n")
    return "".join(lines)
