"""A clean Debian with systemd for a guest of its own: the project's packages lie there, and what they depend on; nothing of that
is installed. scripts/bare-debian makes the root, as for .ci/packages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Sequence

from lib.errors import NotAvailable, SetupError
from lib.processes import run_tool

PACKAGES = "/packages"      # in the root
_SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
_INSTALL = "apt-get install -y --no-install-recommends"
# A guest need not reach the mirror: apt finds there what it would download.
_PREPARE = f"apt-get update && {_INSTALL} systemd systemd-sysv && {_INSTALL} --download-only {PACKAGES}/*.deb"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def make_debian(root: Path, build: Path) -> None:
    """Make the directory `root`, which must not exist; `build` is a release build, from which the packages are made."""
    if "CMAKE_BUILD_TYPE:STRING=Debug\n" in (build / "CMakeCache.txt").read_text():
        raise NotAvailable(f"packages are made of a release build, and {os.path.relpath(build)} is for debugging")
    packages = root.with_name("packages")
    done = run_tool([str(_SCRIPTS / "package"), str(build), str(packages)], 1800)
    if done.returncode != 0:
        raise SetupError(f"scripts/package failed: {done.stderr.decode(errors='replace')[-2000:].strip()}")
    _fetch([str(_SCRIPTS / "bare-debian"), str(root)])
    (root / PACKAGES[1:]).mkdir()
    for package in packages.glob("iwarp-tools_*.deb"):
        shutil.copy2(package, root / PACKAGES[1:])
    proxies = [f"{name}={os.environ[name]}" for name in _PROXIES if name in os.environ]
    _fetch(["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--root={root}", "--mount-proc", "env", "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *proxies, "sh", "-ec", _PREPARE])


def _fetch(argv: Sequence[str]) -> None:
    """Run what needs root, namespaces, and the mirrors of this machine's apt."""
    done = run_tool(argv, 600)
    if done.returncode != 0:
        raise NotAvailable(f"no clean Debian can be made here: {done.stderr.decode(errors='replace')[-1000:].strip()}")
