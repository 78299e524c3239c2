"""Operations of NFSv4.2 inside a guest that is NFS client and server at once: COPY, SEEK, ALLOCATE, DEALLOCATE and extended
attributes on a mount, compared with the exported directory, whose file system has to know them (ext4).

Usage: nfs42_io.py MOUNT EXPORT   Prints one JSON object: the client's count of each operation, and how many of those failed.
A mismatch ends it with a message.
"""

import ctypes
import json
import os
import re
import sys
from typing import Callable

PUNCH_HOLE_AND_KEEP_SIZE = 3
LARGE = 5 << 20     # more than two READs: the server copies it in the background, and calls back
ODD = 100_001
BLOCK = 64 << 10
OPERATIONS = ("COPY", "SEEK", "ALLOCATE", "DEALLOCATE", "GETXATTR", "SETXATTR", "LISTXATTRS", "REMOVEXATTR", "READ", "WRITE")

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)


def require(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"nfs42_io: {message}")


def content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def uncached(path: str) -> bytes:
    """As the server has it: the client has forgotten its pages."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return content(path)


def write(path: str, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        require(file.write(data) == len(data), f"{path} was written in part")
        os.fsync(file.fileno())


def copy(mount: str, export: str, data: bytes) -> None:
    """Parts and all of a file, within the server."""
    for name, start, count in (("odd", 4096, ODD), ("all", 0, len(data))):
        with open(f"{mount}/source", "rb") as source, open(f"{mount}/{name}", "wb") as target:
            done = 0
            while done < count:
                step = os.copy_file_range(source.fileno(), target.fileno(), count - done, start + done, done)
                require(step > 0, f"the copy {name} ends after {done} of {count} octets")
                done += step
            os.fsync(target.fileno())
        require(content(f"{export}/{name}") == data[start:start + count], f"the copy {name} differs")


def holes(mount: str, export: str, data: bytes) -> None:
    path = f"{mount}/holes"
    write(path, data[:4 * BLOCK])
    expected = data[:BLOCK] + bytes(2 * BLOCK) + data[3 * BLOCK:4 * BLOCK]
    descriptor = os.open(path, os.O_RDWR)
    try:
        require(_LIBC.fallocate(descriptor, PUNCH_HOLE_AND_KEEP_SIZE, BLOCK, 2 * BLOCK) == 0,
                f"no hole could be punched: {os.strerror(ctypes.get_errno())}")
        found = [os.lseek(descriptor, offset, whence) for offset, whence in
                 ((0, os.SEEK_HOLE), (BLOCK, os.SEEK_DATA), (0, os.SEEK_DATA), (3 * BLOCK, os.SEEK_HOLE))]
        require(found == [BLOCK, 3 * BLOCK, 0, 4 * BLOCK], f"SEEK finds {found}")
    finally:
        os.close(descriptor)
    require(uncached(path) == expected and content(f"{export}/holes") == expected, "the file with a hole differs")


def allocate(mount: str, export: str) -> None:
    with open(f"{mount}/allocated", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, LARGE)
    there = os.stat(f"{export}/allocated")
    require(there.st_size == LARGE and there.st_blocks * 512 >= LARGE, f"ALLOCATE left {there}")


def attributes(mount: str, export: str) -> None:
    """What the client knows it does not ask for: so the server sets what is read."""
    path, there = f"{mount}/source", f"{export}/source"
    values = {"user.short": b"x", "user.odd": b"y" * 101, "user.long": b"z" * 2000}
    for name, value in values.items():
        os.setxattr(there, name, value)
    require({name: os.getxattr(path, name) for name in values} == values, "GETXATTR gives other values")
    os.setxattr(path, "user.ours", b"text/plain", os.XATTR_CREATE)
    require(os.getxattr(there, "user.ours") == b"text/plain", "SETXATTR set another value")
    listed = sorted(name for name in os.listxattr(path) if name.startswith("user."))
    require(listed == sorted([*values, "user.ours"]), f"LISTXATTRS gives {listed}")
    os.removexattr(path, "user.odd")
    require("user.odd" not in os.listxattr(there), "REMOVEXATTR removed nothing")


def counts(mount: str) -> dict[str, list[int]]:
    """Of this mount: how often each operation was sent, and failed."""
    with open("/proc/self/mountstats") as file:
        ours = file.read().split(f" mounted on {mount} ")[1].split("\ndevice ")[0]
    found = {name: [int(word) for word in numbers.split()] for name, numbers in re.findall(r"^\s*([A-Z_]+): ([\d ]+)$", ours, re.M)}
    return {name: [found[name][0], found[name][8]] for name in OPERATIONS}


def main() -> None:
    mount, export = sys.argv[1], sys.argv[2]
    data = os.urandom(LARGE)
    write(f"{mount}/source", data)
    require(content(f"{export}/source") == data, "WRITE brought other octets")
    require(uncached(f"{mount}/source") == data, "READ brings other octets")
    steps: tuple[Callable[[], None], ...] = (
        lambda: copy(mount, export, data), lambda: holes(mount, export, data), lambda: allocate(mount, export),
        lambda: attributes(mount, export))
    for step in steps:
        step()
    print(json.dumps(counts(mount)))


if __name__ == "__main__":
    main()
