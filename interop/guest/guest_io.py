"""File-system work inside the guest, on a mounted directory: lists, reads, writes, renames; verifies what it can see.

Usage: guest_io.py DIRECTORY SCRATCH SEED SIZE,SIZE,...   DIRECTORY is the mount, SCRATCH a new directory name below it.
Prints one JSON object: what the host has to compare with the server's disk. Any mismatch ends it with a message.
"""

import errno
import hashlib
import json
import mmap
import os
import random
import sys
import time
from typing import Any

BULK_BYTES = 32 << 20
BLOCK = 1 << 20


def sha256_of(path: str) -> str:
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"guest_io: {message}")


def drop_caches(path: str) -> None:
    """Forget cached pages of a file, so that the next read goes to the server."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def list_names(directory: str) -> dict[str, Any]:
    names = sorted(os.listdir(directory))
    return {"count": len(names), "sha256": hashlib.sha256("\n".join(names).encode()).hexdigest()}


def write_bulk(path: str, source: random.Random) -> str:
    digest = hashlib.sha256()
    with open(path, "wb", buffering=0) as file:
        for _ in range(BULK_BYTES // BLOCK):
            block = source.randbytes(BLOCK)
            digest.update(block)
            file.write(block)
        os.fsync(file.fileno())
    return digest.hexdigest()


def aligned(data: bytes) -> mmap.mmap:
    """A page-aligned copy, as direct I/O wants it."""
    buffer = mmap.mmap(-1, max(len(data), 1))
    buffer[: len(data)] = data
    return buffer


def odd_io(path: str, size: int, source: random.Random, direct: bool) -> str:
    """Write `size` bytes at an odd offset over a known background and read them back, buffered or direct."""
    offset = source.randrange(1, 8192) | 1
    expected = bytearray(source.randbytes(offset + size + 777))
    with open(path, "wb") as file:
        file.write(expected)
    patch = source.randbytes(size)
    expected[offset : offset + size] = patch
    flags = os.O_RDWR | (os.O_DIRECT if direct else 0)
    descriptor = os.open(path, flags)
    try:
        written = 0
        while written < size:
            written += os.pwrite(descriptor, memoryview(aligned(patch[written:]))[: size - written], offset + written)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        readback = bytearray()
        while len(readback) < size:
            target = mmap.mmap(-1, size - len(readback))
            count = os.preadv(descriptor, [target], offset + len(readback))
            require(count > 0, f"read of {path} stops after {len(readback)} of {size} bytes")
            readback += target[:count]
    finally:
        os.close(descriptor)
    require(bytes(readback) == patch, f"{path}: {size} bytes at {offset} read back differently")
    drop_caches(path)
    with open(path, "rb", buffering=0) as file:
        require(file.read(len(expected) + 1) == bytes(expected), f"{path}: whole file reads back differently")
    return hashlib.sha256(expected).hexdigest()


def links_and_names(scratch: str) -> dict[str, str]:
    """Symbolic and hard links, renames, unlinks, directories; what must exist afterwards, by name."""
    target = "t" * 200 + "/../up"
    os.symlink(target, f"{scratch}/link")
    require(os.readlink(f"{scratch}/link") == target, "readlink differs from what symlink made")
    with open(f"{scratch}/before", "wb") as file:
        file.write(b"renamed\n")
    os.rename(f"{scratch}/before", f"{scratch}/after")
    require(not os.path.exists(f"{scratch}/before"), "the old name survives the rename")
    with open(f"{scratch}/victim", "wb") as file:
        file.write(b"overwritten by rename\n")
    os.link(f"{scratch}/after", f"{scratch}/hard")
    os.rename(f"{scratch}/hard", f"{scratch}/victim")
    with open(f"{scratch}/gone", "wb") as file:
        file.write(b"x" * 5000)
    os.unlink(f"{scratch}/gone")
    try:
        os.stat(f"{scratch}/gone")
        require(False, "a removed file is still there")
    except OSError as error:
        require(error.errno == errno.ENOENT, f"stat of a removed file: {error}")
    os.mkdir(f"{scratch}/directory")
    os.mkdir(f"{scratch}/directory/deeper")
    os.rmdir(f"{scratch}/directory/deeper")
    return {"link": target}


def main() -> None:
    directory, scratch_name, seed, sizes = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    source = random.Random(seed)
    scratch = f"{directory}/{scratch_name}"
    os.mkdir(scratch)
    seconds: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        start = time.monotonic()
        result = work()
        seconds[name] = round(time.monotonic() - start, 2)
        return result

    report: dict[str, Any] = {
        "listing": timed("list", lambda: list_names(f"{directory}/listing")),
        "bulk_read": timed("read", lambda: sha256_of(f"{directory}/bulk")),
        "bulk_written": timed("write", lambda: write_bulk(f"{scratch}/bulk", source)),
        "odd": {},
        "links": timed("names", lambda: links_and_names(scratch)),
    }

    def odd_sizes() -> None:
        for size in map(int, sizes.split(",")):
            report["odd"][f"buffered-{size}"] = odd_io(f"{scratch}/buffered-{size}", size, source, False)
            report["odd"][f"direct-{size}"] = odd_io(f"{scratch}/direct-{size}", size, source, True)
            report["odd"][f"odd-{size}"] = sha256_of(f"{directory}/odd-{size}")

    timed("odd", odd_sizes)
    report["names"] = sorted(os.listdir(scratch))
    report["seconds"] = seconds
    print(json.dumps(report))


if __name__ == "__main__":
    main()
