"""Writes blocks of known content to a file, each with fsync(), and says on the console (which the host sees even when the
guest is killed) how many the server has acknowledged so far.

Usage: acked_writes.py FILE BLOCKS BLOCK_BYTES LABEL   The console gets lines "LABEL acked N".
"""

import os
import sys


def block(number: int, size: int) -> bytes:
    """The same on the host: interop/scenarios/crash.py imports this function."""
    word = f"{number:08d}".encode()
    return (word * (size // len(word) + 1))[:size]


def main() -> None:
    path, blocks, size, label = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    console = os.open("/dev/console", os.O_WRONLY | os.O_NOCTTY)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in range(blocks):
        data = block(number, size)
        if os.pwrite(file, data, number * size) != len(data):
            sys.exit(f"acked_writes: block {number} was written in part")
        os.fsync(file)
        os.write(console, f"{label} acked {number + 1}\n".encode())
    os.close(file)


if __name__ == "__main__":
    main()
