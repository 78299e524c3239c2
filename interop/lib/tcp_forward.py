"""Forwards TCP connections from a fixed port of 127.0.0.1 to another one, for peers that know no other port."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

from lib.errors import NotAvailable


class TcpForward:
    """A context manager: forwards while it lasts. Raises NotAvailable when someone else listens on the port."""

    def __init__(self, port: int, to: int) -> None:
        self._to = to
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(("127.0.0.1", port))
        except OSError as error:
            self._listener.close()
            raise NotAvailable(f"port {port} of 127.0.0.1 is taken ({error.strerror})") from None
        self._listener.listen()

    def __enter__(self) -> TcpForward:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)   # wakes the thread in accept()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to), 10)
            except OSError:
                return
            server.settimeout(None)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while octets := source.recv(65536):
                sink.sendall(octets)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
