"""scripts/build-siw in a guest without siw, as a fresh Debian is: from nothing to a file system mounted with CRC on, and back.

Under emulation a guest takes a quarter of an hour to unpack and compile siw. `build-siw` has DKMS compile it on the host, against the
guest's kernel; `build-siw-guest` does all of it in the guest. Either way the guest's own DKMS installs it.
"""

from __future__ import annotations

import time

from lib.capture import Traffic, messages_of
from lib.errors import check, check_equal
from lib.iwarp_tool import total
from lib.nfs_files import BULK_BYTES
from lib.processes import free_port, run_tool, wait_listening
from lib.scenario import Context, scenario
from lib.siw_build import BARE, SCRIPTS
from scenarios.kernel_mount import use_mount

# The host's files, where nothing that the guest mounts hides them.
_HOST = "/run/host"
_SCRIPT = f"{_HOST}{SCRIPTS}/build-siw"
_NOTHING = "! modinfo siw && ! ls -d /usr/src/iwarp-siw-*"
# depmod reads every module through 9p; these have nothing to do with it.
_HIDE_MODULES = ("for each in sound drivers/{gpu,hwmon,iio,input,media,net,scsi,staging,usb}; do "
                 "mount -t tmpfs none /lib/modules/$(uname -r)/kernel/$each || exit 1; done")


@scenario("build-siw", "scripts/build-siw for a guest without siw: DKMS, loaded, NFS mounted with CRC on, removed", variants=(BARE,))
def build_siw(context: Context) -> str:
    tarball = context.log_directory / "siw.tar.gz"
    release = context.guest.must("uname -r").strip()
    start = time.monotonic()
    built = run_tool([str(SCRIPTS / "build-siw"), "--kernel", release, "--tarball", str(tarball)], 300)
    check_equal("exit status of build-siw --tarball", (built.returncode, built.stderr.decode()), (0, ""))
    seconds = time.monotonic() - start
    context.guest.must(f"{_NOTHING} && dkms ldtarball {_HOST}{tarball}", 120)
    return f"built on the host in {seconds:.0f} s; {_install_and_mount(context, 300)}"


@scenario("build-siw-guest", "the same, and the guest compiles it (slow)", variants=(BARE,), on_demand=True)
def build_siw_guest(context: Context) -> str:
    context.guest.must(_NOTHING)
    return _install_and_mount(context, 1800)


def _install_and_mount(context: Context, timeout: float) -> str:
    guest, ganesha, port = context.guest, context.services.ganesha, free_port()
    guest.must(_HIDE_MODULES)
    start = time.monotonic()
    output = guest.must(_SCRIPT, timeout)
    seconds = time.monotonic() - start
    check("siw is loaded" in output, f"build-siw says: {output}")
    guest.must("rdma link add siw0 type siw netdev eth0 && rdma link show siw0/1", 60)

    gateway = context.iwarp("gateway", "--rdma-listen", f"127.0.0.1:{port}", "--tcp", f"127.0.0.1:{ganesha.nfs_port}",
                            "--allow", "127.0.0.0/8")
    wait_listening(port, "iwarp gateway", 10, gateway.child)
    use_mount(context, "4.1", f"rdma,port={port}", ganesha)
    connections = gateway.closed_connections()
    # QEMU cuts the stream anywhere: without the repair of siw, CRC would end connections, and the client would hide it.
    check_equal("how the connections of the mount ended", [c.end for c in connections], ["client closed"])
    connections[0].check_negotiated("the gateway", {"role": "responder", "rev": "2", "crc": "1"})
    counters = total(connections)
    check(min(counters["tx_write_bytes"], counters["rx_read_bytes"]) >= BULK_BYTES, f"too little went by RDMA: {counters}")
    check_equal("exit status of the gateway after SIGTERM", gateway.child.stop(10), 0)
    guest.must("! dmesg | grep 'siw: crc error'")

    guest.must(f"rdma link delete siw0 && {_SCRIPT} --uninstall", 300)
    guest.must(_NOTHING)
    context.traffic.append(Traffic("build-siw", port, len(connections), messages_of(connections), True))
    return f"build-siw took {seconds:.0f} s in the guest"
