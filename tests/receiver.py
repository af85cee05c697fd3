"""A receiver of webhooks on loopback, which does what the path of a request says."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class Receiver(ThreadingHTTPServer):
    """``url`` is where it is; ``got`` what came: path, headers and body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.released = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *arguments: Any) -> None:
        """Whoever has hung up has hung up."""

    def close(self) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        _, kind, *rest = self.path.partition("?")[0].split("/")
        match kind:
            case "status":
                extra = {"Retry_After": unquote("/".join(rest[1:]))} if rest[1:] else {}
                self.answer(int(rest[0]), **extra)
            case "redirect":
                self.answer(int(rest[0]), Location="/" + "/".join(rest[1:]))
            case "hang":
                self.server.released.wait(30)
            case "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
            case "drip":
                self.send_response(200)
                self.end_headers()
                self.drip(b".")
            case "early":
                self.drip(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            case "heading":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                self.drip(b"x")
            case "empty":  # blocks that hold nothing, for whoever decodes
                self.send_response(200)
                self.send_header("Content-Encoding", "deflate")
                self.end_headers()
                self.drip(b"\x00\x00\x00\xff\xff")
            case "bomb":
                packed = gzip.compress(gzip.compress(b"0" * 20_000_000), 9)
                self.answer(200, body=packed, Content_Encoding="gzip, gzip")
            case "to":
                self.answer(307, Location=unquote("/".join(rest)))
            case "long":
                self.answer(200, body=b"x" * 1_000_000)
            case _:
                self.answer(200, body=b"thanks")

    def drip(self, bytes: bytes) -> None:
        while not self.server.released.wait(0.05):
            self.wfile.write(bytes)
            self.wfile.flush()

    def answer(self, status: int, *, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Set-Cookie", "a=b")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """The tests have their own."""
