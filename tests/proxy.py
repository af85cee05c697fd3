"""A TCP proxy on the loopback that can be closed, opened, and made to lose an answer."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Bound from the start, so that its ``port`` is its own; refuses connections until ``open``."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.socket()
        self._server.bind(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.answer_lost = threading.Event()
        self._marker = b""
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._is_open = False

    def open(self) -> None:
        self._server.listen()
        self._is_open = True
        self._start(self._accept)

    def lose_answer_to_commit_after(self, text: str) -> None:
        """Let the server do the next COMMIT of a connection that sent ``text``, and cut it off before
        the client is told."""
        self._marker = text.encode()

    def question(self, link: object, data: bytes) -> bool:
        """Whether what a client sent is passed on; called on a thread of the link, and may wait."""
        return True

    def answer(self, link: object, data: bytes) -> bool:
        """The same for what the server sent."""
        return True

    def close(self) -> None:
        for each in [self._server, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in [self._server, *self._sockets]:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                link = _Link(self, client, server)
                self._start(link.pass_questions)
                self._start(link.pass_answers)

    def _start(self, target: object) -> None:
        thread = threading.Thread(target=target, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def take_marker(self, data: bytes) -> bool:
        """Whether this is what the answer to lose was announced with; true once."""
        if not self._marker or self._marker not in data:
            return False
        self._marker = b""
        return True


class _Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._is_marked = False
        self._is_doomed = False

    def pass_questions(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(65536):
                self._is_marked = self._is_marked or self._proxy.take_marker(data)
                self._is_doomed = self._is_marked and b"COMMIT" in data.upper()
                if not self._proxy.question(self, data):
                    break
                self._server.sendall(data)
        self._cut()

    def pass_answers(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._server.recv(65536):
                if self._is_doomed:
                    self._proxy.answer_lost.set()
                    break
                if not self._proxy.answer(self, data):
                    break
                self._client.sendall(data)
        self._cut()

    def _cut(self) -> None:
        for each in (self._client, self._server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
