"""A WebSocket client (RFC 6455), as much of it as listening to a server takes. Standard library."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import socket
import ssl
import struct
from urllib.parse import urlsplit

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to a client's key to show that it speaks the protocol (RFC 6455, 1.3)."""

MOST = 1 << 28
"""Bytes of a message that is believed."""


class WebSocketError(ConnectionError):
    """The other side does not speak the protocol, or the connection is gone."""


class WebSocket:
    """A connection. `receive` from one thread; `close` from any."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        """url: ws:// or wss://. Raises OSError, WebSocketError."""
        parts = urlsplit(url)
        secure = parts.scheme == "wss"
        port = parts.port or (443 if secure else 80)
        host = parts.hostname or ""
        self._socket: socket.socket = socket.create_connection((host, port), timeout)
        if secure:
            context = ssl.create_default_context()
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._bytes = self._message = b""
        self._kind = 0
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            self._shake_hands(target, parts.netloc)
        except BaseException:
            self._socket.close()
            raise

    def _shake_hands(self, target: str, host: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            (
                f"GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                "Sec-WebSocket-Version: 13\r\n\r\n"
            ).encode()
        )
        while b"\r\n\r\n" not in self._bytes:
            if len(self._bytes) > 1 << 16:
                raise WebSocketError("the server's answer has no end")
            self._more()
        head, self._bytes = self._bytes.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        if first.split(" ")[1:2] != ["101"]:
            raise WebSocketError(f"the server answers {first!r} to a websocket")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        want = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
        if headers.get("sec-websocket-accept") != want:
            raise WebSocketError("the server's answer to the websocket key is wrong")

    def receive(self, timeout: float) -> str | None:
        """The next text message, None if none came within `timeout` s; pictures are passed over.

        Raises WebSocketError when the connection has ended, OSError.
        """
        self._socket.settimeout(timeout)
        while True:
            try:
                final, code, data = self._frame()
            except TimeoutError:
                return None  # what has come of a frame or a message waits
            if code == PING:
                self._send(PONG, data)
            elif code == CLOSE:
                raise WebSocketError("the server closed the websocket")
            elif code in (TEXT, BINARY, 0):
                self._kind = code or self._kind
                self._message += data
                if len(self._message) > MOST:
                    raise WebSocketError(f"a message has more than {MOST} bytes")
                if not final:
                    continue
                message, self._message = self._message, b""
                if self._kind == TEXT:
                    return message.decode("utf-8", "replace")

    def _frame(self) -> tuple[bool, int, bytes]:
        """(is the last of its message, what it is, payload); leaves the buffer if cut short."""
        self._need(2)
        first, second = self._bytes[0], self._bytes[1]
        length, at = second & 127, 2
        if length == 126:
            self._need(4)
            length, at = struct.unpack(">H", self._bytes[2:4])[0], 4
        elif length == 127:
            self._need(10)
            length, at = struct.unpack(">Q", self._bytes[2:10])[0], 10
        if length > MOST or second & 128:  # servers do not mask
            raise WebSocketError("the server sends frames that make no sense")
        self._need(at + length)
        data = self._bytes[at : at + length]
        self._bytes = self._bytes[at + length :]
        return bool(first & 128), first & 15, data

    def _need(self, count: int) -> None:
        while len(self._bytes) < count:
            self._more()

    def _more(self) -> None:
        piece = self._socket.recv(1 << 16)
        if not piece:
            raise WebSocketError("the connection has ended")
        self._bytes += piece

    def _send(self, code: int, data: bytes) -> None:
        """A short control frame; clients mask (RFC 6455, 5.3)."""
        mask = os.urandom(4)
        hidden = bytes(b ^ mask[i % 4] for i, b in enumerate(data[:125]))
        self._socket.sendall(bytes([128 | code, 128 | len(hidden)]) + mask + hidden)

    def close(self) -> None:
        """End the connection; safe to call twice."""
        with contextlib.suppress(OSError):
            self._send(CLOSE, b"")
        self._socket.close()
