"""A stand-in for the service: its static files, its security headers, and saves that answer as a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import quorate_serve
from quorate_serve.security_headers import CONTENT_SECURITY_POLICY

STATIC = Path(quorate_serve.__file__).parent / "static"
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}

Answer = tuple[int, Any] | Callable[[dict[str, Any]], tuple[int, Any]]


class SaveServer:
    """Serves ``pages`` and the static folder; saves use up ``answers`` one by one, then each gets ``usual``."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.answers: list[Answer] = []
        self.usual: Answer = lambda body: (200, {"event": len(self.received), "document": body["document"]})
        self.received: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.events: list[str] = []
        self.delay = 0.0
        self.port = 0
        self.start()

    @property
    def saved(self) -> list[dict[str, Any]]:
        """What arrived, whatever the answer was."""
        return [body for body, _ in self.received]

    def url(self, path: str = "/") -> str:
        return f"http://localhost:{self.port}{path}"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("localhost", self.port), _handler(self))
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: SaveServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def reply(self, status: int, content: bytes, kind: str, **headers: str) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(content)),
                "Content-Security-Policy": CONTENT_SECURITY_POLICY,
                "Cache-Control": "no-store",
                **headers,
            }.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path in server.pages:
                return self.reply(200, server.pages[path].encode(), TYPES[".html"])
            if path == "/api/v1/live" and server.events:
                return self.reply(200, server.events.pop(0).encode(), "text/event-stream")
            file = STATIC / path.removeprefix("/static/")
            if path.startswith("/static/") and file.is_file() and STATIC in file.resolve().parents:
                return self.reply(200, file.read_bytes(), TYPES[file.suffix])
            return self.reply(204 if path in {"/favicon.ico", "/api/v1/live"} else 404, b"", "text/plain")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(server.delay)
            server.received.append((body, {name.lower(): value for name, value in self.headers.items()}))
            answer = server.answers.pop(0) if server.answers else server.usual
            status, content = answer(body) if callable(answer) else answer
            if isinstance(content, str):
                self.reply(status, content.encode(), "text/html", **({"Location": "/login"} if status == 302 else {}))
            else:
                self.reply(status, json.dumps(content).encode(), "application/json")

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    return Handler
