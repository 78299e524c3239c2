"""Processes of a benchmark, between a client and a server on this machine: pairs of gateways, plain TCP relays, and what they cost."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def cpu_seconds(pid):
    """User and system time of a process, its reaped children included."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(f) for f in fields[11:15]) / TICKS


def progress(text):
    if sys.stderr.isatty():
        print(text.ljust(60), end="\r", file=sys.stderr)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Processes:
    """Starts nothing by itself. Whatever happens, stop() ends what runs."""

    def __init__(self, iwarp, work, crc):
        self.iwarp, self.work, self.crc = iwarp, work, crc
        self.children = []

    def gateways(self, server, rdma, client, *more, crc=None):
        """A gateway that clients reach at port `client`, and the one behind it, in front of the server's port."""
        policy = ["--fpdu", "max", "--crc", crc or self.crc, *(more or ("--workers", "1"))]
        far = self.start(rdma, self.iwarp, "gateway", "--rdma-listen", f"127.0.0.1:{rdma}", "--tcp", f"127.0.0.1:{server}", *policy)
        near = self.start(client, self.iwarp, "gateway", "--tcp-listen", f"127.0.0.1:{client}", "--rdma", f"127.0.0.1:{rdma}", "--insecure-ports",
                          *policy)
        return [near, far]

    @staticmethod
    def cpu_seconds(pid):
        return cpu_seconds(pid)

    def spawn(self, command, **options):
        """A process that stop() ends, whenever a signal comes: none comes until it is in the list."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            child = subprocess.Popen(command, start_new_session=True,
                                     preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS), **options)
            self.children.append(child)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return child

    def start(self, port, *command):
        log = open(self.work / f"{port}.log", "wb")
        child = self.spawn(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        needle = f":{port:04X}"
        for _ in range(200):
            if child.poll() is not None:
                break
            if any(line.split()[1].endswith(needle) and line.split()[3] == "0A"
                   for table in ("tcp", "tcp6") for line in open(f"/proc/net/{table}").readlines()[1:]):
                return child.pid
            time.sleep(0.05)
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {command[0]} does not listen on port {port}:\n" + (self.work / f"{port}.log").read_text())

    def relay(self, port, to):
        return self.start(port, "socat", "-b", "262144", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,nodelay",
                          f"TCP:127.0.0.1:{to},nodelay")

    def stop(self):
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # once is enough
        for child in self.children:
            child.send_signal(signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
