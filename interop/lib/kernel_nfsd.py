"""The guest's kernel NFS server: exports /srv/export from a tmpfs over TCP and over siw."""

from __future__ import annotations

from lib.guest import Guest

EXPORT = "/srv/export"      # path for v3; v4 sees it as its root
TCP_PORT = 2049
MOUNT_PORT = 20048
RDMA_PORT = 20049

# NFSv4's grace period is ended by hand: its least is 10 s, its default 90 s. lockd has one of its own, 50 s by default, and
# while either lasts the server gives no delegations.
_START = f"""
set -e
modprobe -a nfsd lockd rpcrdma
echo 3 > /proc/sys/fs/nfs/nlm_timeout
echo 3 > /proc/sys/fs/nfs/nlm_grace_period
mkdir -p {EXPORT} /run/rpcbind /var/lib/nfs/sm /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery
: > /var/lib/nfs/etab; : > /var/lib/nfs/rmtab; : > /var/lib/nfs/state
mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
echo '{EXPORT} *(rw,fsid=0,insecure,no_root_squash,no_subtree_check,sync)' > /etc/exports
rm -f /etc/exports.d/*.exports
rpcbind -w
rpc.mountd -p {MOUNT_PORT}
exportfs -a
echo 10 > /proc/fs/nfsd/nfsv4gracetime
rpc.nfsd --rdma={RDMA_PORT} 4
echo Y > /proc/fs/nfsd/v4_end_grace || true
cat /proc/fs/nfsd/portlist
"""


class KernelNfsd:
    """A running kernel NFS server in a guest, with a copy of the host's test tree in its export."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        guest.must("bash -s", 150, stdin=_START)
        guest.wait_listening(TCP_PORT, 10)
        guest.wait_listening(MOUNT_PORT, 10)

    @property
    def tcp_port(self) -> int:
        """Port of 127.0.0.1 on the host that reaches NFS over TCP."""
        return self.guest.forwards[TCP_PORT]

    @property
    def mount_port(self) -> int:
        """Port of 127.0.0.1 on the host that reaches the mount service."""
        return self.guest.forwards[MOUNT_PORT]

    @property
    def rdma_port(self) -> int:
        """Port of 127.0.0.1 on the host that reaches NFS over RDMA."""
        return self.guest.forwards[RDMA_PORT]

    def serve_rdma_also(self, port: int) -> int:
        """Serve NFS over RDMA at another port of the guest, too, for what the capture has no counters of. Port of the host that reaches it."""
        self.guest.must(f"echo 'rdma {port}' > /proc/fs/nfsd/portlist", 15)
        self.guest.wait_listening(port, 15, rdma=True)
        return self.guest.forwards[port]

    def copy_tree(self, source: str) -> None:
        """Fill the export from a directory of the host, unless it is filled."""
        self.guest.must(f"test -e {EXPORT}/complete || cp -r '/run/host{source}'/. {EXPORT}/", 120)
