"""The gateway as a service: the packages in a clean Debian that systemd runs, a mount of the kernel's NFS/RDMA client through it,
and what an administrator does meanwhile.

The service and the client are a guest each, NFS is served by nfs-ganesha on the host; both guests reach it and each other through
ports of the host, which is 10.0.2.2 for both.
"""

from __future__ import annotations

import re

from lib.capture import Traffic, messages_of
from lib.debian_root import PACKAGES, make_debian
from lib.errors import ScenarioFailure, check, check_equal
from lib.ganesha import EXPORT
from lib.guest import HOST_ADDRESS, Guest
from lib.iwarp_tool import parse_connections
from lib.nfs_files import BULK_BYTES, sha256
from lib.scenario import ONCE, Context, scenario
from lib.service import CONFIGURATION, UNIT, Service, read_metrics
from scenarios.crash import acked, await_acked, finish_blocks, mount, write_blocks

_MOUNT_POINT = "/mnt/service"
_RDMA, _SECOND, _METRICS = _PORTS = (20049, 20050, 9100)
_FIRST = "nfs-rdma"         # as the file that is shipped names its listener
_APT = "DEBIAN_FRONTEND=noninteractive apt-get -y"
_MISTAKE = "alow = 1\n"
_WHY = f"{CONFIGURATION}:[0-9]+:1: unknown key 'alow' in \\[\\[listener\\]\\], did you mean 'allow'\\?"
# systemd's range of users that exist while a service runs.
_DYNAMIC_USERS = range(61184, 65520)
_NET_BIND_SERVICE = 1 << 10
# As .ci/packages judges it: logs, caches and dpkg's own books may change. Who has an account may not.
_LIST_FILES = r"""(cd / && find . -xdev \( -path ./tmp -o -path ./var/tmp -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/apt \) \
  -prune -o -print | grep -vE '^\./(etc/ld\.so\.cache|var/lib/dpkg/(.*-old|lock.*|triggers/.*|available))$' | sort
  cat /etc/passwd /etc/group)"""


@scenario("service", "the packages in a clean Debian with systemd: NFS mounted through the service, reloaded, restarted, hung, purged",
          variants=ONCE)
def service(context: Context) -> str:
    root = context.log_directory / "debian"
    make_debian(root, context.binary.parent.parent)
    guest = context.boot_debian(root, _PORTS)
    unit = Service(guest)
    try:
        guest.must(f"{_LIST_FILES} >/run/files-before", 120)
        guest.must(f"{_APT} install --no-install-recommends {PACKAGES}/*.deb", 300)
        _start(context, unit)
        _check_process(unit)
        _use(context, unit)
        seconds = _outages(context, unit)
        _stop(unit)
        _remove(unit)
    finally:
        _keep_journal(context, guest)
    return f"a gateway that hung was started again within {seconds:.0f} s"


def _start(context: Context, unit: Service) -> None:
    """Disabled as installed; not started with a wrong file, nor again and again; active means that it listens."""
    unit.check_properties("as installed", UnitFileState="disabled", ActiveState="inactive")
    unit.edit(*_edits(context))
    unit.append(_MISTAKE)
    check(unit.systemctl("enable --now").status != 0, "the service starts with a wrong file")
    unit.check_properties("with a wrong file", UnitFileState="enabled", ActiveState="failed", Result="exit-code", ExecMainStatus="2",
                          NRestarts="0")
    check(re.search(_WHY, unit.systemctl("status").output) is not None, "systemctl status does not say what is wrong with the file")
    unit.edit("$d")
    # Both in one command: nothing is waited for.
    rows = unit.guest.must(f"systemctl start {UNIT} && cat /proc/net/tcp", 60)
    for port in (_RDMA, _METRICS):
        check(f":{port:04X} 00000000:0000 0A" in rows, f"the service is started and does not listen on port {port}: {rows}")
    unit.check_properties("with the file repaired", Type="notify", ActiveState="active", SubState="running", StatusText="1 listener",
                          NRestarts="0")


def _edits(context: Context) -> list[str]:
    """What makes the file that is shipped serve the other guest."""
    return [f's|^rdma-listen = .*|rdma-listen = "0.0.0.0:{_RDMA}"|', f's|^tcp = .*|tcp = "{_server(context)}"|',
            f's|^#allow = .*|allow = ["{HOST_ADDRESS}"]|', f's|^#metrics = .*|metrics = "0.0.0.0:{_METRICS}"|',
            's|^#log-level = .*|log-level = "debug"|']  # all counters of a connection, however long the line


def _server(context: Context) -> str:
    return f"{HOST_ADDRESS}:{context.services.ganesha.nfs_port}"


def _check_process(unit: Service) -> None:
    """The unit's hardening is in force."""
    status = dict(line.split(":\t", 1) for line in unit.guest.must(f"cat /proc/{unit.main_pid()}/status").splitlines())
    users = {int(user) for user in status["Uid"].split()}
    check(len(users) == 1 and users <= set(_DYNAMIC_USERS), f"the service has the users {users}")
    for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        check_equal(f"{name} of the service", int(status[name], 16), _NET_BIND_SERVICE)
    check_equal("NoNewPrivs and Seccomp of the service", (status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    mounts = unit.guest.must(f"cat /proc/{unit.main_pid()}/mounts").splitlines()
    options = {words[1]: words[3].split(",")[0] for words in map(str.split, mounts)}
    check_equal("how the service sees / and its state", (options["/"], options["/var/lib/private/iwarp"]), ("ro", "rw"))
    owner = unit.guest.must("stat -L --format='%u %a' /var/lib/iwarp")
    check_equal("user and mode of the state directory", owner.split(), [str(users.pop()), "700"])


def _use(context: Context, unit: Service) -> None:
    """The kernel mounts with NFSv4.1 and CRC on. The counters fit; reloads do not disturb it."""
    client, ganesha, metrics = context.guest, context.services.ganesha, unit.guest.forwards[_METRICS]
    port = unit.guest.forwards[_RDMA]
    client.must(f"modprobe -a nfs nfsv3 nfsv4 rpcrdma; mkdir -p {_MOUNT_POINT}; "
                f"mount -t nfs -o rdma,port={port},vers=4.1,sec=sys {HOST_ADDRESS}:{EXPORT} {_MOUNT_POINT}", 60)
    client.must(f"cp {_MOUNT_POINT}/bulk {_MOUNT_POINT}/service-copy", 120)
    check_equal("SHA-256 of what went both ways", sha256(ganesha.root / "service-copy"), sha256(ganesha.root / "bulk"))
    before, seen, after = _calls_of(client), read_metrics(metrics, _FIRST), _calls_of(client)
    check(before <= seen["calls_total.nfs"] <= after, f"{seen['calls_total.nfs']} Calls are counted, the client sent {before} to {after}")
    check_equal("Calls without Replies", seen["calls_total.nfs"] - seen["replies_total.nfs"], seen["outstanding_calls.nfs"])
    check_equal("connections: now, opened, refused", [seen["connections"], seen["connections_opened_total"],
                sum(value for name, value in seen.items() if name.startswith("connections_refused_total"))], [1, 1, 0])
    for name in ("rdma_bytes_total.write.out", "rdma_bytes_total.read.in"):
        check(BULK_BYTES <= seen[name] < 2 * BULK_BYTES, f"{name} is {seen[name]} where {BULK_BYTES} octets were moved")

    _reload(context, unit)
    read = client.must(f"sha256sum < {_MOUNT_POINT}/odd-65537 && rm {_MOUNT_POINT}/service-copy", 60)
    check_equal("SHA-256 of what is read after the reloads", read.split()[0], sha256(ganesha.root / "odd-65537"))
    check_equal("connections opened, after the reloads", read_metrics(metrics, _FIRST)["connections_opened_total"], 1)
    client.must(f"umount {_MOUNT_POINT}", 60)
    unit.wait_journal(" closed ", 15)
    connections = parse_connections(unit.journal())
    check_equal("how the connections of the mount ended", [c.end for c in connections], ["client closed"])
    connections[0].check_negotiated("the service", {"role": "responder", "rev": "2", "crc": "1"})
    context.traffic.append(Traffic("service", port, 1, messages_of(connections), True))


def _calls_of(client: Guest) -> int:
    """RPCs that the client has sent on the connection of its mount."""
    stats = client.must("cat /proc/self/mountstats").split(f" mounted on {_MOUNT_POINT} ")[1]
    return int(re.findall(r"xprt:\trdma( \d+){5} (\d+)", stats)[0][1])


def _reload(context: Context, unit: Service) -> None:
    """A wrong file changes nothing and says why; a changed one gives a listener more."""
    unit.append(_MISTAKE)
    check(unit.systemctl("reload").status != 0, "a reload with a wrong file does not fail")
    check(re.search(_WHY, unit.systemctl("status").output) is not None, "systemctl status does not say what is wrong with the file")
    unit.check_properties("after a reload that failed", ActiveState="active", StatusText="1 listener", NRestarts="0")
    unit.edit("$d")
    unit.append(f'[[listener]]\nname = "second"\nrdma-listen = "0.0.0.0:{_SECOND}"\ntcp = "{_server(context)}"\n'
                f'allow = ["{HOST_ADDRESS}"]\ncredits = 7\n')
    unit.must("reload")
    unit.wait_journal("reloaded: 1 added, 0 removed, 0 changed", 30)
    unit.check_properties("after a reload", ActiveState="active", StatusText="2 listeners", NRestarts="0")


def _outages(context: Context, unit: Service) -> float:
    """A client writes through the new listener (v3) while the service is restarted, and while it hangs. Returns how many seconds
    it took to be there again."""
    ganesha, pid = context.services.ganesha, unit.main_pid()
    mount(context.guest, unit.guest.forwards[_SECOND], ganesha, "3")
    check_equal("RPCs that the new listener grants", read_metrics(unit.guest.forwards[_METRICS], "second")["credits_granted"], 7)
    job = write_blocks(context.guest, "service")
    await_acked(context.guest, "service", 1)
    unit.must("restart")
    unit.check_properties("restarted", ActiveState="active", NRestarts="0")
    check(unit.main_pid() != pid, "the restart left the process")
    # One may have been under way.
    await_acked(context.guest, "service", acked(context.guest, "service") + 2)

    unit.guest.must(f"systemctl kill --signal=STOP --kill-who=main {UNIT}")
    took = float(unit.guest.must(f"a=$(date +%s%N); until systemctl show --property=NRestarts {UNIT} | grep -q =1 && systemctl is-active -q {UNIT}; "
                                 "do sleep 0.5; done; echo $((($(date +%s%N) - a) / 1000000))", 150)) / 1000
    unit.wait_journal("Watchdog timeout", 5)
    finish_blocks(context.guest, job, "service", ganesha)
    ports = _source_ports(unit)
    # The third, after what was no orderly end, may be another.
    check(len(ports) >= 2 and ports[0] == ports[1] < 1024, f"towards the server the client had the ports {ports}")
    return took


def _source_ports(unit: Service) -> list[int]:
    """Ports that clients of the second listener had towards the server, in order."""
    return [int(port) for port in re.findall(r"^second: established .* tcp_local=\S+:(\d+)", unit.journal(), re.M)]


def _stop(unit: Service) -> None:
    unit.must("stop")
    unit.check_properties("after its stop", ActiveState="inactive", Result="success", ExecMainStatus="0")
    kept = unit.guest.must("cat /var/lib/private/iwarp/ports")
    check(HOST_ADDRESS in kept, f"the state directory does not hold the client's port: {kept}")


def _remove(unit: Service) -> None:
    """An upgrade restarts the service, removal ends it, and purge leaves nothing, though the unit had failed."""
    guest = unit.guest
    unit.must("start")
    pid = unit.main_pid()
    guest.must(f"dpkg --install {PACKAGES}/*.deb", 120)
    check(unit.main_pid() not in (0, pid), "an upgrade does not restart the service")
    unit.append(_MISTAKE)
    guest.run(f"systemctl restart {UNIT}", 60)
    unit.check_properties("with a wrong file", ActiveState="failed")
    guest.must(f"{_APT} purge --auto-remove iwarp-tools", 300)
    left = guest.run(f"{_LIST_FILES} | diff /run/files-before -", 120)
    check_equal("what purge leaves (>) or takes away (<)", left.output, "")
    check_equal("what systemd knows of the unit", guest.must("systemctl list-units --all --no-legend 'iwarp*'; "
                "systemctl list-unit-files --no-legend 'iwarp*'; find /run /tmp /var/tmp -xdev -name '*iwarp*'; pidof iwarp || true"), "")


def _keep_journal(context: Context, guest: Guest) -> None:
    try:
        (context.log_directory / "journal.log").write_text(guest.must("journalctl --no-pager"))
    except ScenarioFailure:
        pass    # the guest is gone; there is a reason for that already
