"""Provokes recalls inside a guest that is NFS server and client at once: holds files open on the mount, for which the
server gives read delegations, then opens the same files for writing in the exported directory. Each of those opens waits
until the client has given its delegation back.

Usage: recall.py MOUNT EXPORT COUNT   Prints one JSON object: what the server and the client saw. A wrong content ends it
with a message.
"""

import glob
import json
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor


def require(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"recall: {message}")


def read_all(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def delegations() -> int:
    """Delegations that the server has given and not got back."""
    return sum(read_all(path).count(b"type: deleg") for path in glob.glob("/proc/fs/nfsd/clients/*/states"))


def callback_states() -> list[str]:
    """What the server thinks of the back channel of each NFSv4.1 client. Those of libnfs speak 4.0."""
    infos = (read_all(path).decode() for path in glob.glob("/proc/fs/nfsd/clients/*/info"))
    return [state for info in infos if "minor version: 1" in info
            for state in re.findall(r"^callback state: (\S+)", info, re.M)]


def delegation_returns(mount: str) -> int:
    """DELEGRETURNs sent by the client of this mount."""
    text = read_all("/proc/self/mountstats").decode()
    ours = text.split(f" mounted on {mount} ")[1].split("\ndevice ")[0]
    returns = re.search(r"^\s*DELEGRETURN: (\d+)", ours, re.M)
    return int(returns[1]) if returns else 0


def open_for_writing(path: str, content: bytes) -> float:
    """Replace a file's content on the server. Returns how long the open had to wait, in seconds."""
    start = time.monotonic()
    descriptor = os.open(path, os.O_WRONLY)
    waited = time.monotonic() - start
    try:
        require(os.pwrite(descriptor, content, 0) == len(content), f"short write to {path}")
    finally:
        os.close(descriptor)
    return waited


def main() -> None:
    mount, export, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    names = [f"recall-{index}" for index in range(count)]
    # 3,000 octets travel in line, 30,000 by RDMA.
    before = {name: os.urandom(30000 if index % 2 else 3000) for index, name in enumerate(names)}
    after = {name: os.urandom(len(content)) for name, content in before.items()}
    for name, content in before.items():
        with open(f"{export}/{name}", "wb") as file:
            file.write(content)

    held = [open(f"{mount}/{name}", "rb", buffering=0) for name in names]
    for name, file in zip(names, held):
        require(file.read() == before[name], f"{name} reads differently before the recall")
    given = delegations()
    states = callback_states()
    with ThreadPoolExecutor(count) as pool:
        waits = list(pool.map(lambda name: open_for_writing(f"{export}/{name}", after[name]), names))
    left = delegations()
    for file in held:
        file.close()
    for name in names:
        require(read_all(f"{mount}/{name}") == after[name], f"{name} reads differently after the recall")
    print(json.dumps({"given": given, "left": left, "callback_states": states, "longest_wait": round(max(waits), 2),
                      "delegreturns": delegation_returns(mount)}))
    for name in names:
        os.unlink(f"{export}/{name}")


if __name__ == "__main__":
    main()
