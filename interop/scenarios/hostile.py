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
from lib.scenario import Context, rping_ports, scenario

_ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT = 1800.0
_NOBODY_IS_SERVED = 3     # exit status of hostile_peer


@scenario("hostile", "tests/hostile against siw and the kernel's NFS server; writes docs/HOSTILE.md", on_demand=True)
def hostile_peers(context: Context) -> str:
    boots, reports = 0, []
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
        check(report.stat().st_size > 0, f"hostile_peer reported nothing about {role}")
        reports.append(str(report))
    release = context.guest.must("uname -r").strip()
    done = run_tool([str(_ROOT / "tests" / "hostile" / "results_page"), "--update", "--linux", release, *reports], 30,
                    log=context.log_directory / "results_page.log")
    check(done.returncode == 0, "the page that came of it has problems: see results_page.log")
    return f"{boots} guests"


def _serve_rping(guest: Guest) -> int:
    """The host's port of a server that comes back when a case has ended it."""
    port = rping_ports(1)[0]
    guest.spawn(f"while true; do rping -s -P -a {GUEST_ADDRESS} -p {port} -S 64; sleep 0.2; done")
    guest.wait_listening(port, 15, rdma=True)
    return guest.forwards[port]


def _serve_nfs(guest: Guest) -> int:
    return KernelNfsd(guest).rdma_port


def _attack(context: Context, port: int, role: str, report: Path) -> int:
    """Goes on behind the last row of the report. Exit status of hostile_peer. siw gives up waiting for a Request after 10 s."""
    flavours = ["--flavour", "impatient"] + ([] if context.peer_wants_crc else ["--flavour", "prefer-off"])
    done = run_tool([str(context.binary.parent / "hostile_peer"), "--target", f"127.0.0.1:{port}", "--role", role, *flavours,
                     "--settle", "300", "--resume", "--report", str(report)], _TIMEOUT, log=context.log_directory / f"{role}.log")
    check(done.returncode in (0, 1, _NOBODY_IS_SERVED), f"hostile_peer ended with status {done.returncode}")
    return done.returncode
