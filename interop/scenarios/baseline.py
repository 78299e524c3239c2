"""The peers without us, on demand: when one of these fails, the environment is broken, not our stack."""

from __future__ import annotations

from lib.errors import check, check_equal
from lib.guest import GUEST_ADDRESS, HOST_ADDRESS
from lib.scenario import Context, scenario
from lib.sctp import BadNetwork, prepare, report_of, start_peer, wait_peer_listens
from scenarios.kernel_mount import use_mount
from scenarios.libnfs import prepare_server, use_libnfs
from scenarios.rping import ITERATIONS, SIZES


@scenario("baseline-rping", "kernel rping to itself within the guest", needs_iwarp=False, on_demand=True)
def kernel_rping(context: Context) -> None:
    for size in SIZES:
        port = context.take_rping_port()
        flags = f"-a {GUEST_ADDRESS} -p {port} -S {size} -C {ITERATIONS} -V -v"
        # The server's count means nothing: the client decides.
        server = context.guest.spawn(f"rping -s {flags} -C {ITERATIONS // 2} 2>&1 | grep -ac 'ping data:'")
        context.guest.wait_listening(port, 15, rdma=True)
        client = context.guest.must(f"rping -c {flags} 2>&1 | grep -ac 'ping data:'", 60)
        check_equal(f"pings of the client at {size} bytes", client.strip(), str(ITERATIONS))
        check_equal(f"pings of the server at {size} bytes", server.wait(15).output.strip(), str(ITERATIONS))


@scenario("baseline-mount", "kernel mounts nfs-ganesha over TCP, v4.1, v4.0 and v3", needs_iwarp=False, on_demand=True)
def tcp_mounts(context: Context) -> None:
    ganesha = context.services.ganesha
    for version in ("4.1", "4.0", "3"):
        use_mount(context, version, f"proto=tcp,port={ganesha.nfs_port}", ganesha)


@scenario("baseline-libnfs", "libnfs to the kernel's NFS server over TCP", needs_iwarp=False, on_demand=True)
def tcp_libnfs(context: Context) -> None:
    nfsd = prepare_server(context)
    use_libnfs(context, nfsd.tcp_port, nfsd)


@scenario("baseline-sctp", "sctp_peer.py to itself: the guest's SCTP by way of QEMU's network and back, 1 % lost and out of order",
          needs_iwarp=False, on_demand=True)
def kernel_sctp(context: Context) -> str:
    prepare(context.guest)
    common = ["--port", "5043", "--sessions", "2", "--rounds", "20"]
    with BadNetwork(context.guest) as network:
        passive = start_peer(context.guest, ["--listen", *common])
        wait_peer_listens(context.guest, 5043)
        # The host sends what comes to that port back to the guest.
        active = start_peer(context.guest, ["--connect", HOST_ADDRESS, "--udp-port", str(context.guest.sctp_udp_port), *common])
        sessions = [session for peer in (active, passive) for session in report_of(peer, 70)["sessions"]]
        lost = network.lost()
    for session in sessions:
        check_equal("a session's end", (session["complete"], session["state"], session["rounds"]), (True, "over", 20))
    early = [session["early"] for session in sessions]
    check(min(*lost, *early) > 0, f"{lost} packets lost, {early} messages early: the network was good")
    return f"{sum(lost)} packets lost, {sum(early)} messages early"
