"""fio with verification and stress-ng's file system stressors in the guest, on a mount through iwarp's gateway. scripts/nfs-stress runs it."""

from __future__ import annotations

import os
import shutil

from lib.errors import SetupError, check, check_equal
from lib.ganesha import EXPORT, Ganesha
from lib.guest import HOST_ADDRESS, Guest
from lib.iwarp_tool import total
from lib.processes import free_port, wait_listening
from lib.scenario import ONCE, Context, scenario

_MOUNT_POINT = "/mnt/stress"
_WORK = "stress"
# Each with one worker, all at the same time. Of the stressors that make many files, few: a guest without KVM is slow.
_STRESSORS = {
    "chdir": "--chdir-dirs 64", "chmod": "", "copy-file": "--copy-file-bytes 128m", "dentry": "--dentries 64", "dir": "--dir-dirs 64",
    "filename": "", "flock": "", "fstat": f"--fstat-dir {_MOUNT_POINT}", "hdd": "--hdd-bytes 8m", "io": "", "iomix": "--iomix-bytes 4m", "link": "",
    "lockf": "--lockf-nonblock", "mmap": "--mmap-bytes 2m --mmap-file", "open": "--open-max 64", "readahead": "--readahead-bytes 4m",
    "rename": "", "revio": "--revio-bytes 4m", "seek": "--seek-size 4m", "symlink": "", "sync-file": "--sync-file-bytes 4m", "touch": "",
    "utime": ""}
_AT_ONCE = 6


@scenario("nfs-stress", "fio with verification, then stress-ng's file system stressors on a mount of the gateway (scripts/nfs-stress)",
          variants=ONCE, on_demand=True)
def stress(context: Context) -> str:
    for program in ("fio", "stress-ng"):
        if shutil.which(program) is None:
            raise SetupError(f"{program} is missing; scripts/nfs-stress installs it")
    seconds = int(os.environ.get("IWARP_STRESS_SECONDS", "60"))
    version = os.environ.get("IWARP_STRESS_VERS", "4.2")
    ganesha, guest, port = context.services.ganesha, context.guest, free_port()
    gateway = context.iwarp("gateway", "--rdma-listen", f"127.0.0.1:{port}", "--tcp", f"127.0.0.1:{ganesha.nfs_port}", "--allow", "127.0.0.0/8")
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    _mount(guest, ganesha, port, version)
    scratch = ganesha.root / _WORK
    shutil.rmtree(scratch, ignore_errors=True)
    guest.must(f"mkdir {_MOUNT_POINT}/{_WORK}")
    done = [_fio(guest, seconds // 6, direct) for direct in (1, 0)]
    done += _stress(guest, seconds - 2 * (seconds // 6))
    check_equal("names that are left behind", [p.name for p in scratch.iterdir() if not p.name.startswith("fio")], [])
    guest.must(f"rm -r {_MOUNT_POINT}/{_WORK} && umount {_MOUNT_POINT}", 300)
    # The client would hide a lost connection behind a replay.
    connections = gateway.closed_connections()
    check_equal("how the connections of the mount ended", [c.end for c in connections], ["client closed"])
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    guest.must("! dmesg | grep -E 'BUG|blocked for more than|siw: .*error|rpcrdma: .*(fail|error)|not responding'")
    counters = total(connections)
    moved = (counters["tx_write_bytes"] + counters["rx_read_bytes"]) >> 20
    check(moved >= 8, f"too little went by RDMA: {counters}")
    return f"vers={version}: {'; '.join(done)}; {moved} MiB by RDMA Write and Read, {counters['rx_send']} Calls"


def _mount(guest: Guest, ganesha: Ganesha, port: int, version: str) -> None:
    options = f"rdma,port={port},vers={version},sec=sys,hard"
    if version == "3":
        options += f",nolock,mountaddr={HOST_ADDRESS},mountport={ganesha.mount_port},mountproto=tcp"
    guest.must(f"modprobe -a nfs nfsv3 nfsv4 rpcrdma; mkdir -p {_MOUNT_POINT}", 60)
    guest.must(f"mount -t nfs -o {options} {HOST_ADDRESS}:{EXPORT} {_MOUNT_POINT}", 60)


def _fio(guest: Guest, seconds: int, direct: int) -> str:
    """Four jobs write and read at random places, check what they read, and at the end all that they wrote."""
    guest.must(f"fio --name=fio-{direct} --directory={_MOUNT_POINT}/{_WORK} --rw=randrw --bsrange=4k-256k --size=8m --numjobs=4 --direct={direct} "
               f"--ioengine=psync --verify=crc32c --verify_fatal=1 --verify_backlog=64 --end_fsync=1 --time_based --runtime={max(seconds, 5)} "
               "--minimal --output=/dev/null", seconds * 3 + 240)
    return f"fio, {'O_DIRECT' if direct else 'page cache'}: verified"


def _stress(guest: Guest, seconds: int) -> list[str]:
    """Some stressors at a time. --verify makes them check what they do; what a version of NFS has not (fallocate) they skip."""
    wanted = list(_STRESSORS.items())
    groups = [wanted[i:i + _AT_ONCE] for i in range(0, len(wanted), _AT_ONCE)]
    each = max(seconds // len(groups), 5)
    for group in groups:
        words = " ".join(f"--{name} 1 {options}" for name, options in group)
        # A stressor ends after a whole round of what it does; on a guest without KVM a round can take minutes.
        guest.must(f"stress-ng --temp-path {_MOUNT_POINT}/{_WORK} {words} --timeout {each} --verify --no-rand-seed", each + 300)
    return [f"stress-ng: {', '.join(name for name, _ in wanted)}"]
