"""nfs-ganesha on 127.0.0.1: the TCP NFS server that the gateway serves over RDMA. Private configuration and recovery root."""

from __future__ import annotations

import os
from pathlib import Path

from lib.errors import SetupError
from lib.processes import Child, Children, free_port, listening, wait_listening

EXPORT = "/export"      # pseudo path; the v3 path is the real directory
_RPCBIND_PORT = 111

_CONFIG = """\
NFS_CORE_PARAM {{
    Protocols = 3, 4;
    Bind_addr = 127.0.0.1;
    NFS_Port = {nfs_port};
    MNT_Port = {mount_port};
    Enable_NLM = false;
    Enable_RQUOTA = false;
    Plugins_Dir = "{plugins}";
}}
NFSv4 {{
    Graceless = true;
    RecoveryRoot = "{recovery}";
    RecoveryBackend = fs;
    Only_Numeric_Owners = true;
    Minor_Versions = 0, 1;
}}
EXPORT {{
    Export_Id = 1;
    Path = "{root}";
    Pseudo = "{pseudo}";
    Access_Type = RW;
    Squash = No_Root_Squash;
    SecType = sys;
    Protocols = 3, 4;
    Transports = TCP;
    Attr_Expiration_Time = 0;
    FSAL {{ Name = VFS; }}
}}
LOG {{ Default_Log_Level = EVENT; }}
"""


class Ganesha:
    """A running server. `nfs_port` and `mount_port` are TCP ports of 127.0.0.1, `root` is the exported directory."""

    def __init__(self, directory: Path, root: Path, children: Children) -> None:
        self.root = root
        self.nfs_port = free_port()
        self.mount_port = free_port()
        _ensure_rpcbind(directory, children)
        recovery = directory / "recovery"
        # Its own sub-directories are not made by every version.
        for sub in ("v4recov", "v4old"):
            (recovery / sub).mkdir(parents=True, exist_ok=True)
        config = directory / "ganesha.conf"
        config.write_text(_CONFIG.format(nfs_port=self.nfs_port, mount_port=self.mount_port, recovery=recovery,
                                         root=root, pseudo=EXPORT, plugins=_plugins_directory()))
        self._server: Child = children.start(
            "nfs-ganesha", ["ganesha.nfsd", "-F", "-f", str(config), "-L", str(directory / "ganesha.log"),
                            "-p", str(directory / "ganesha.pid")], directory / "ganesha-stderr.log")
        wait_listening(self.nfs_port, f"nfs-ganesha (see {directory / 'ganesha.log'})", 30, self._server)
        wait_listening(self.mount_port, "nfs-ganesha's mount service", 10, self._server)

    def stop(self) -> None:
        self._server.stop(10)


def _ensure_rpcbind(directory: Path, children: Children) -> None:
    """NFSv3 in ganesha does not start without rpcbind. One that is already there is used and left alone."""
    if os.path.exists("/run/rpcbind.sock") and listening(_RPCBIND_PORT):
        return
    # Bound to loopback only. rpcbind adds 127.0.0.1 by itself, and Debian's crashes when it is named as well.
    rpcbind = children.start("rpcbind", ["rpcbind", "-f", "-h", "127.0.0.2"], directory / "rpcbind.log")
    wait_listening(_RPCBIND_PORT, "rpcbind", 10, rpcbind)


def _plugins_directory() -> str:
    for directory in ("/usr/lib/x86_64-linux-gnu/ganesha", "/usr/lib/ganesha", "/usr/lib64/ganesha"):
        if os.path.isdir(directory):
            return directory
    raise SetupError("no FSAL plug-ins of nfs-ganesha found; install nfs-ganesha-vfs")
