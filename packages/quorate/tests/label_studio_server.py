"""A Label Studio server for tests: small, in this process, and it fails as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from quorate.label_studio import Client


class Pretence:
    """A small server that answers as told, and remembers what it was asked."""

    def __init__(self, answer: Callable[[str, str, Any], tuple[int, Any]], port: int = 0) -> None:
        self.asked: list[tuple[str, str]] = []
        self.keys: set[str] = set()
        pretence = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                path = self.path.split("?")[0]
                pretence.asked.append((self.command, path))
                pretence.keys.add(self.headers.get("Authorization") or "")
                code, content = answer(self.command, path, body)
                if code == 0:  # hang up in the middle
                    self.send_response(200)
                    self.send_header("Content-Length", "100000")
                    self.end_headers()
                    self.wfile.write(b'[{"id": 1, ')
                    return
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", "http://example.invalid/")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Pretence:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class World:
    """A project in memory, as a server would keep it; ``fail`` says which request of each kind fails, and how."""

    def __init__(self, fail: dict[tuple[str, str], list[int]] | None = None) -> None:
        self.fail = fail or {}
        self.predictions: dict[int, Any] = {}
        self.version = ""
        self.views: dict[int, Any] = {}
        self.last = 0
        self.enterprise, self.assigned = False, dict[int, list[int]]()
        region = {"from_name": "ner", "to_name": "words", "type": "labels"}
        value = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
        annotations = [{"completed_by": n, "result": [{**region, "value": value}] if n < 3 else []} for n in (1, 2, 3)]
        self.tasks: list[dict[str, Any]] = [
            {"id": n, "data": {"text": "Ada sang."}, "annotations": annotations} for n in (1, 2)
        ]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        planned = self.fail.get((method, path.rstrip("/").rsplit("/", 1)[-1]))
        if planned:
            code = planned.pop(0)
            if code == -1:  # done, and then the connection is lost
                self._do(method, path, body)
                return 503, {}
            if code != 200:
                return code, {"detail": "out of order"}
        return self._do(method, path, body)

    def _do(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "PATCH" and path == "/api/projects/1/":
            self.version = body["model_version"]
            return 200, {}
        if path == "/api/projects/1/":
            control = {"type": "Labels", "to_name": ["words"], "labels": ["PER"]}
            return 200, {"parsed_label_config": {"ner": control}, "model_version": self.version}
        if path == "/api/current-user/whoami":
            return 200, {"id": 99, "email": "key@example.com"}
        if path.endswith("/export"):
            return 200, self.tasks
        if path == "/api/predictions/":
            return 200, list(self.predictions.values())
        if path.endswith("/import/predictions"):
            for prediction in body:
                number = len(self.predictions) + 1
                self.predictions[number] = {"id": number, **prediction}
            return 201, {"created": len(body)}
        if path.startswith("/api/dm/views/") or path == "/api/users/" or path.endswith(("/assignees", "/api/tasks")):
            return self._of_the_data_manager(method, path, body)
        number = int(path.rstrip("/").rsplit("/", 1)[-1])
        if method == "PATCH":
            self.predictions[number] |= body
            return 200, self.predictions[number]
        self.predictions.pop(number, None)
        return 204, b""

    def _of_the_data_manager(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/api/users/":
            return 200, [{"id": 1, "email": "ann@example.com"}, {"id": 2, "email": "bob@example.com"}]
        if path.endswith("/assignees"):
            if not self.enterprise:
                return 404, {"detail": "Not found."}
            if method == "GET":
                return 200, []
            self.assigned[body["users"][0]] = body["selectedItems"]["included"]
            return 200, {}
        if path == "/api/tasks":  # of the tab that was changed last
            tasks = [item["value"] for item in self.views[self.last]["data"]["filters"]["items"]]
            return 200, {"total": len({task["id"] for task in self.tasks} & set(tasks))}
        if method == "GET":
            return 200, list(self.views.values())
        if method == "POST":
            self.last = max(self.views, default=0) + 1
            self.views[self.last] = {"id": self.last, **body}
            return 201, self.views[self.last]
        number = int(path.rstrip("/").rsplit("/", 1)[-1])
        if method == "PATCH":
            self.last = number
            self.views[number] |= body
            return 200, self.views[number]
        self.views.pop(number, None)
        return 204, b""


def hurried(url: str, attempts: int = 3) -> tuple[Client, list[float]]:
    pauses: list[float] = []
    return Client(url, "secret-key", attempts=attempts, timeout=5, pause=pauses.append), pauses
