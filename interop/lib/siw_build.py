"""Builds the kernel peer: siw in six compile-time variants, and the initramfs that boots into the host's own root.

Debian's kernel leaves CONFIG_RDMA_SIW off, so siw is built out of tree against the installed headers. scripts/siw/extract takes it
from linux-source and repairs it, as scripts/build-siw does for users. Everything lands in one directory per kernel version and
recipe, and is built once.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterable

from lib.errors import SetupError

# What each variant changes: patches of scripts/siw/variants.
VARIANTS: dict[str, tuple[str, ...]] = {
    "default": (),
    "crc": ("crc-required",),
    "rtr": ("peer-to-peer",),
    "rtr-crc": ("crc-required", "peer-to-peer"),
    "v1": ("revision-1",),
    "strict": ("crc-strict",),
}
BARE = "bare"     # a guest without siw, as Debian is
GUESTS = (*VARIANTS, BARE)
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
_EXTRACT = SCRIPTS / "siw" / "extract"
_BOOT_MODULES = ("virtio_pci", "virtio_net", "virtio_console", "9pnet_virtio", "9p", "overlay")
_GUEST_FILES = Path(__file__).resolve().parent.parent / "guest"


@dataclass(frozen=True)
class Peer:
    """What QEMU boots: the Debian kernel and an initramfs that holds every variant."""

    release: str
    kernel: Path
    initramfs: Path


def choose_kernel(root: Path = Path("/")) -> tuple[str, Path]:
    """Release of the newest kernel below `root` that has its modules, its headers and its source, and that source. Cloud and
    realtime kernels lack what we need, those of backports have their source elsewhere."""
    reasons = []
    releases = [p.name.removeprefix("vmlinuz-") for p in (root / "boot").glob("vmlinuz-*")]
    for release in sorted(releases, key=lambda text: [int(part) for part in re.findall(r"\d+", text)], reverse=True):
        version = ".".join(release.split(".")[:2])
        sources = sorted((root / "usr/src").glob(f"linux-source-{version}.tar.*"))
        if re.search(r"-(cloud|rt)-|bpo", release):
            reasons.append(f"{release} is a cloud, realtime or backports kernel")
        elif not (root / "lib/modules" / release / "modules.dep").exists():
            reasons.append(f"{release} has no modules in /lib/modules")
        elif not (root / f"usr/src/linux-headers-{release}/Makefile").exists():
            reasons.append(f"{release} lacks linux-headers-{release}")
        elif not sources:
            reasons.append(f"{release} lacks linux-source-{version}")
        else:
            return release, sources[0]
    raise SetupError(f"no kernel to boot: {'; '.join(reasons) or 'there is none in /boot'}. Cure, as root: apt-get update && "
                     "apt-get install linux-image-amd64 linux-headers-amd64 linux-source-6.1")


def build_peer(cache: Path, say: Callable[[str], None]) -> Peer:
    """The peer for the newest kernel, from `cache` when it was built before."""
    release, source = choose_kernel()
    siw_recipe = [Path(__file__), *sorted(p for p in _EXTRACT.parent.rglob("*") if p.is_file())]
    recipe = _digest([*siw_recipe, *sorted(p for p in _GUEST_FILES.iterdir() if p.is_file())])
    initramfs = cache / f"peer-{release}-{recipe}.gz"
    peer = Peer(release, Path(f"/boot/vmlinuz-{release}"), initramfs)
    if not initramfs.exists():
        modules = _build_siw(cache / f"siw-{release}-{_digest(siw_recipe)}", release, source, say)
        say(f"packing the initramfs of {release}")
        _pack_initramfs(cache / "initramfs.tmp", release, modules, initramfs)
    return peer


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _build_siw(target: Path, release: str, tarball: Path, say: Callable[[str], None]) -> dict[str, Path]:
    """siw modules by variant; a finished one is kept."""
    modules = {name: target / f"siw-{name}.ko" for name in VARIANTS}
    if all(path.exists() for path in modules.values()):
        return modules
    say(f"building siw for {release}: {', '.join(VARIANTS)} (once, about a minute)")
    scratch = target / "build"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    source = scratch / "repaired"
    _run([str(_EXTRACT), str(tarball), str(source)], 300)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(_build_variant, source, scratch / name, release, path, VARIANTS[name])
                for name, path in modules.items()]
        for job in jobs:
            job.result()
    shutil.rmtree(scratch)
    return modules


def _build_variant(source: Path, copy: Path, release: str, module: Path, changes: tuple[str, ...]) -> None:
    shutil.copytree(source, copy)
    for change in changes:
        patch = _EXTRACT.parent / "variants" / f"{change}.patch"
        _run(["patch", "-d", str(copy), "-p5", "--forward", "--fuzz=0", "--silent", "-i", str(patch)], 20)
    _run(["make", "-C", f"/usr/src/linux-headers-{release}", f"M={copy}", "CONFIG_RDMA_SIW=m", "modules"], 300)
    (copy / "siw.ko").rename(module)


def _pack_initramfs(root: Path, release: str, siw: dict[str, Path], target: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for directory in ("bin", "modules", "proc", "sys", "dev", "lower", "upper", "root"):
        (root / directory).mkdir(parents=True)
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    (root / "modules/order").write_text("".join(
        f"{_place_module(path, root / 'modules')}\n" for path in _module_files(release)))
    for name, path in siw.items():
        shutil.copy2(path, root / f"modules/siw-{name}.ko")
    for path in _GUEST_FILES.iterdir():
        if path.is_file():
            shutil.copy2(path, root / path.name)
    (root / "init").chmod(0o755)
    partial = target.with_suffix(".partial")
    _run(["sh", "-c", f"find . | cpio --quiet -o -H newc -R 0:0 | gzip -1 > '{partial}'"], 60, cwd=root)
    partial.rename(target)
    shutil.rmtree(root)


def _module_files(release: str) -> list[Path]:
    """Boot modules with everything they depend on, in an order that insmod accepts."""
    ordered: list[Path] = []
    for name in _BOOT_MODULES:
        shown = _run(["/sbin/modprobe", "--show-depends", "-S", release, name], 20)
        for line in shown.splitlines():
            words = line.split()
            if words[:1] == ["insmod"] and Path(words[1]) not in ordered:
                ordered.append(Path(words[1]))
    return ordered


def _place_module(path: Path, directory: Path) -> str:
    shutil.copy2(path, directory / path.name)
    return path.name


def _run(argv: list[str], timeout: float, cwd: Path | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise SetupError(f"{' '.join(argv)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
