"""`iwarp probe` against the kernel, on demand: what siw negotiates under rdma-core's rping and under the kernel's NFS server.

Asserts what is known of siw from its source; writes the two reports to docs/PROBE.md.
"""

from __future__ import annotations

import json
from pathlib import Path

from lib.errors import check, check_equal
from lib.guest import GUEST_ADDRESS
from lib.processes import run_tool
from lib.scenario import Context, scenario

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "PROBE.md"
_TIMEOUT = 180.0
_DEVIATIONS_FOUND = 3

_HEAD = """# What `iwarp probe` finds in Linux {release}

siw, the kernel's software iWARP, as MPA responder. Written by `interop/run --variant default probe`; do not edit.
"""

# What siw does whatever its ULP is: no Markers, reserved bits echoed, 0x3FFF taken for a number, 256 octets of Private Data at most.
_OF_SIW = {"markers": "RFC5044-4.3-2", "reserved-bits": "RFC6581-6-4", "depth-ulp": "RFC6581-9.1-27",
           "private-data-max": "RFC5044-7.1.2-28"}


@scenario("probe", "iwarp probe against siw under rping and the kernel's NFS server; writes docs/PROBE.md", on_demand=True)
def probe(context: Context) -> None:
    port = context.take_rping_port()
    server = context.guest.spawn(f"while true; do rping -s -P -a {GUEST_ADDRESS} -p {port} -S 64; sleep 0.2; done")
    context.guest.wait_listening(port, 15, rdma=True)
    rping, rping_text = _ask(context, context.guest.forwards[port])
    server.kill()
    nfs, nfs_text = _ask(context, context.boot.nfsd.rdma_port, "--private-data", "rpcrdma")
    for report in (rping, nfs):
        found = {c["question"]: c for c in report["connections"]}
        for question, requirement in _OF_SIW.items():
            seen = [d["requirement"] for d in found[question]["deviations"]]
            check(requirement in seen, f"{question}: {requirement} expected, {seen} seen")
        check_equal("CRC", report["summary"]["crc"], "on if either side wants it")
        check_equal("S of the Reply", found["enhanced"]["reply"]["S"], True)
        check_equal("Reply to revision 3", found["revision-3"]["reply"], None)
        check_equal("RTR by Write", found["rtr-write"].get("rtr"), {"form": "Write", "fate": "taken"})
        check_equal("RTR by Read", found["rtr-read"].get("rtr"), {"form": "Read", "fate": "taken"})
    check("sends 4096, receives 4096" in nfs["summary"]["inline"], f"inline thresholds: {nfs['summary']['inline']}")
    release = context.guest.must("uname -r").strip()
    _PAGE.write_text(_HEAD.format(release=release) + _section("rdma-core's `rping -s -P`", rping_text) +
                     _section("The kernel's NFS server", nfs_text), encoding="utf-8")


def _ask(context: Context, port: int, *flags: str) -> tuple[dict, str]:
    """The report as data and as text, from a probe each."""
    outputs = []
    for form in ((), ("--json",)):
        done = run_tool([str(context.binary), "probe", f"127.0.0.1:{port}", *flags, *form], _TIMEOUT,
                        log=context.log_directory / f"probe-{port}.log")
        check_equal("exit code", done.returncode, _DEVIATIONS_FOUND)
        outputs.append(done.stdout.decode())
    (context.log_directory / f"probe-{port}.txt").write_text(outputs[0], encoding="utf-8")
    return json.loads(outputs[1]), outputs[0].replace(f"127.0.0.1:{port}", "the guest")


def _section(title: str, text: str) -> str:
    return f"\n## {title}\n\n```\n{text}```\n"
