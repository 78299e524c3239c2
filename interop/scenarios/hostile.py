"""The cases of tests/hostile against the kernel, on demand: what siw and the kernel's NFS server do where ours reacts as listed.

Nothing is judged but that both are still served at the end: the outcome is docs/HOSTILE.md, which this scenario writes.
"""

from __future__ import annotations

from pathlib import Path

from lib.errors import check
from lib.guest import GUEST_ADDRESS
from lib.processes import run_tool
from lib.scenario import Context, scenario

_ROOT = Path(__file__).resolve().parents[2]
_CASES = _ROOT / "tests" / "hostile" / "cases.tsv"
_PAGE = _ROOT / "docs" / "HOSTILE.md"
_TIMEOUT = 300.0

_HEAD = """# What hostile peers meet

For each rule that a peer can break on the wire: what our side does about it, as `tests/hostile` proves, and what Linux {release} does:
siw with rdma-core's `rping -s -P` (roles mpa responder, rdma receiver) and the kernel's NFS server over siw (rpc responder). Words:
[tests/hostile/README.md](../tests/hostile/README.md). Where the two differ, the note says why ours is as it is, or the requirement does.
Rows that need a victim configured for the test were not put to Linux: their cell is empty. Written by `interop/run --variant default
hostile`; do not edit.

| Requirement | Role | Broken by | Ours | Linux | Note |
|---|---|---|---|---|---|
"""


@scenario("hostile", "tests/hostile against siw and the kernel's NFS server; writes docs/HOSTILE.md", on_demand=True)
def hostile_peers(context: Context) -> None:
    port = context.take_rping_port()
    # rping may not survive a case; the next one finds a new one.
    server = context.guest.spawn(f"while true; do rping -s -P -a {GUEST_ADDRESS} -p {port} -S 64; sleep 0.2; done")
    context.guest.wait_listening(port, 15, rdma=True)
    seen = _attack(context, context.guest.forwards[port], "rdma")
    server.kill()
    nfsd = context.boot.nfsd
    seen |= _attack(context, nfsd.rdma_port, "rpcrdma")
    release = context.guest.must("uname -r").strip()
    _PAGE.write_text(_HEAD.format(release=release) + _table(seen), encoding="utf-8")


def _attack(context: Context, port: int, role: str) -> dict[tuple[str, str], str]:
    """What was seen, by role and script."""
    report = context.log_directory / f"{role}.tsv"
    run_tool([str(context.binary.parent / "hostile_peer"), "--target", f"127.0.0.1:{port}", "--role", role,
              "--report", str(report)], _TIMEOUT, log=context.log_directory / f"{role}.log")
    rows = [line.split("\t") for line in report.read_text(encoding="utf-8").splitlines()]
    check(len(rows) > 0, f"hostile_peer reported nothing about {role}")
    return {(role, script): seen for _, role, script, _, seen in rows}


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
