"""Issue scenario 2c: libnfs over TCP, through our gateway, to the kernel's NFS server over siw."""

from __future__ import annotations

import shutil
from pathlib import Path

from lib.capture import Traffic, messages_of
from lib.errors import check, check_equal
from lib.iwarp_tool import Connection, total
from lib.kernel_nfsd import EXPORT, RDMA_PORT, KernelNfsd
from lib.nfs_files import BULK_BYTES, LIST_COUNT, ODD_SIZES, long_name, sha256
from lib.processes import free_port, run_tool, wait_listening
from lib.scenario import ONCE, Context, scenario

_TIMEOUT = 90.0


@scenario("libnfs", "libnfs (v4 list and read, v3 list and write) -> gateway -> kernel nfsd over siw: 2,000 names, 32 MiB, odd sizes")
def libnfs_through_gateway(context: Context) -> None:
    nfsd = prepare_server(context)
    crc = context.peer_wants_crc
    rtr = context.peer_wants_rtr
    port = free_port()
    gateway = context.iwarp("gateway", "--tcp-listen", f"127.0.0.1:{port}", "--rdma", f"127.0.0.1:{nfsd.rdma_port}",
                            "--insecure-ports", "--crc", "on" if crc else "prefer-off", "--p2p" if rtr else "--no-p2p")
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    use_libnfs(context, port, nfsd)
    connections = gateway.closed_connections()
    for connection in connections:
        # "aborted": each tool ends by resetting its TCP connection, and the gateway ends ours likewise.
        check(connection.end in ("aborted", "done", "server closed"), f"a connection ended by {connection.end}")
        check_negotiated(connection, crc, rtr)
    counters = total(connections)
    # Long replies come by RDMA Write into our Reply chunk; the server fetches long calls by RDMA Read.
    odd = sum(ODD_SIZES)
    check(counters["rx_write_bytes"] >= BULK_BYTES + odd, f"too little came in by RDMA Write: {counters}")
    check(counters["tx_read_bytes"] >= BULK_BYTES + odd // 2, f"too little went out by RDMA Read: {counters}")
    check(counters["tx_send_bytes"] < BULK_BYTES // 8, f"too much went out by Send: {counters}")
    check(counters["rx_send_bytes"] < BULK_BYTES // 8, f"too much came in by Send: {counters}")
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    context.traffic.append(Traffic("libnfs", RDMA_PORT, len(connections), messages_of(connections), crc))


@scenario("version-2", "a gateway that asks knfsd over siw for RPC-over-RDMA version 2: ERR_VERS once, then version 1, on later connections at once",
          variants=ONCE)
def version_2_is_declined(context: Context) -> None:
    nfsd = prepare_server(context)
    tree = context.services.ganesha.root
    port = free_port()
    trace, capture = context.log_directory / "trace.txt", context.log_directory / "between.pcap"
    gateway = context.iwarp("gateway", "--tcp-listen", f"127.0.0.1:{port}", "--rdma", f"127.0.0.1:{nfsd.rdma_port}",
                            "--insecure-ports", "--crc", "prefer-off", "--no-p2p", "--rpcrdma-version", "2", "--trace", str(trace),
                            "--pcap", str(capture))
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    copy = context.log_directory / "copy"
    name = f"odd-{max(ODD_SIZES)}"
    _run(context, "nfs-cp", _v4(name, port), str(copy))
    check_equal(f"SHA-256 of {name} read", sha256(copy), sha256(tree / name))
    _run(context, "nfs-cp", str(copy), _v3("version-2", port, nfsd))
    check_equal(f"SHA-256 of {name} written", context.guest.must(f"sha256sum {EXPORT}/version-2", 60).split()[0], sha256(tree / name))
    connections = gateway.closed_connections(2)
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    check_declined(trace.read_text().splitlines())
    explained = run_tool((str(context.binary), "trace", "-v", str(capture)), _TIMEOUT)
    check_equal("exit status of `iwarp trace`", explained.returncode, 0)
    check_declined(explained.stdout.decode().splitlines())
    settled = gateway.child.log_text().count("rpcrdma=1")
    check_equal("connections in version 1", settled, len(connections))
    context.traffic.append(Traffic("version-2", RDMA_PORT, len(connections), messages_of(connections), False))


def check_declined(lines: list[str]) -> None:
    """One question for version 2, the server's refusal, and version 1 from then on."""
    headers = [line for line in lines if " tx rpcrdma RDMA_" in line]
    check_equal("messages of version 2", sum("vers=2" in line for line in headers), 1)
    check("vers=2" in headers[0], f"the first message is {headers[0]}")
    refusals = [line for line in lines if " rx rpcrdma RDMA_ERROR(" in line]
    check_equal("refusals", [line[line.index("error="):] for line in refusals], ["error=ERR_VERS, low=1, high=1)"])


def check_negotiated(connection: Connection, crc: bool, rtr: bool) -> None:
    """We initiate towards the kernel's NFS server: siw echoes our CRC flag and, asked for RTR, takes Write."""
    connection.check_negotiated("our gateway", {
        "role": "initiator", "rev": "2", "enhanced": "1", "crc": str(int(crc)),
        "p2p": str(int(rtr)), "rtr": "write" if rtr else "none"})
    # The server fetches long calls with Reads that we serve. We issue none ourselves: our ORD is what the server admits.
    connection.check_range("our gateway", "ird", 1, 32)
    connection.check_range("our gateway", "ord", 1, 32)


def prepare_server(context: Context) -> KernelNfsd:
    """The guest's NFS server with the test tree in its export."""
    tree = context.services.ganesha.root
    nfsd = context.boot.nfsd
    nfsd.copy_tree(str(tree))
    return nfsd


def use_libnfs(context: Context, nfs_port: int, nfsd: KernelNfsd) -> None:
    """List, read and write with libnfs's tools and compare with the host's tree and the guest's disk."""
    tree = context.services.ganesha.root
    for url in (_v4("listing", nfs_port), _v3("listing", nfs_port, nfsd)):
        listed = _run(context, "nfs-ls", url)
        names = sorted(line.split()[-1] for line in listed.splitlines() if line.split()[-1] not in (".", ".."))
        check_equal(f"number of names in {url}", len(names), LIST_COUNT)
        check(names == sorted(map(long_name, range(LIST_COUNT))), f"names in {url} differ from those of the export")

    local = context.log_directory / "libnfs-files"
    local.mkdir()
    files = ["bulk", *(f"odd-{size}" for size in ODD_SIZES)]
    for name in files:
        _run(context, "nfs-cp", _v4(name, nfs_port), str(local / name))
        check_equal(f"SHA-256 of {name} read with libnfs", sha256(local / name), sha256(tree / name))
    _compare_stdout(context, "nfs-cat", _v4("odd-65537", nfs_port), tree / "odd-65537")

    context.guest.must(f"rm -rf {EXPORT}/up && mkdir {EXPORT}/up")
    for name in files:
        _run(context, "nfs-cp", str(local / name), _v3(f"up/{name}", nfs_port, nfsd))
    sums = context.guest.must(f"cd {EXPORT}/up && sha256sum *", 60)
    written = {line.split()[1]: line.split()[0] for line in sums.splitlines()}
    check_equal("SHA-256 sums of the files written with libnfs", written, {name: sha256(tree / name) for name in files})
    shutil.rmtree(local)


def _v4(path: str, port: int) -> str:
    return f"nfs://127.0.0.1//{path}?version=4&nfsport={port}"


def _v3(path: str, port: int, nfsd: KernelNfsd) -> str:
    return f"nfs://127.0.0.1{EXPORT}/{path}?version=3&nfsport={port}&mountport={nfsd.mount_port}"


def _run(context: Context, *command: str) -> str:
    done = run_tool(command, _TIMEOUT, log=context.log_directory / "libnfs.log")
    check(done.returncode == 0, f"`{' '.join(command)}` ended with status {done.returncode}: "
                                f"{done.stderr.decode(errors='replace')[-500:].strip()}")
    return done.stdout.decode(errors="replace")


def _compare_stdout(context: Context, program: str, url: str, expected: Path) -> None:
    done = run_tool((program, url), _TIMEOUT, log=context.log_directory / "libnfs.log")
    check(done.returncode == 0 and done.stdout == expected.read_bytes(), f"`{program} {url}` gives other bytes")
