"""The files that NFS scenarios read and write, and their sums."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

LIST_COUNT = 2000
BULK_BYTES = 32 << 20
# Around the padding, page, inline-threshold and segment boundaries.
ODD_SIZES = (1, 3, 1023, 1025, 4095, 65537, 1048577)


def long_name(index: int) -> str:
    """Name of the index-th file of the directory listing: about 180 characters."""
    return f"{index:05d}-{'long-name-' * 17}{index % 7 * 'x'}"


def make_tree(root: Path) -> None:
    """Fill an export with the listing directory, the bulk file and one file per odd size. Same bytes every time."""
    listing = root / "listing"
    if (root / "complete").exists():
        return
    listing.mkdir(parents=True, exist_ok=True)
    for index in range(LIST_COUNT):
        (listing / long_name(index)).write_bytes(b"" if index % 2 else b"%d\n" % index)
    source = random.Random(5040)
    (root / "bulk").write_bytes(source.randbytes(BULK_BYTES))
    for size in ODD_SIZES:
        (root / f"odd-{size}").write_bytes(source.randbytes(size))
    (root / "complete").write_bytes(b"")


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
