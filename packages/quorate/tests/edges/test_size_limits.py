"""What is far too large, or nested without end, is one line on standard error: no traceback, and not all of memory."""

from __future__ import annotations

import gzip
import http.server
import io
import json
import random
import threading
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import quorate
from quorate.formats import spacy_docs
from quorate.formats.opened import Input, opened
from quorate.label_studio import Client
from running import Run

LINE = {"id": "1", "tokens": ["Ada", "sang"], "annotations": {"ann": ["B-PER", "O"]}}
LONG = LINE | {"meta": "x" * 3_000_000}
TASK = {
    "id": 1,
    "data": {"text": "Ada sang"},
    "annotations": [
        {
            "id": 1,
            "completed_by": 1,
            "result": [
                {
                    "from_name": "label",
                    "to_name": "text",
                    "type": "labels",
                    "value": {"start": 0, "end": 3, "labels": ["PER"]},
                }
            ],
        }
    ],
}


EMPTY = b"\n" + (b" " * 999 + b"\n") * 3000


def bomb(name: str, content: bytes) -> bytes:
    """A little that unpacks to much."""
    if name.endswith(".gz"):
        return gzip.compress(content + EMPTY)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.jsonl", content + EMPTY)
    return packed.getvalue()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


DOCCANO = {"id": 1, "text": "Ada sang", "label": [[0, 3, "PER"]]}
BOMBS = {"crowd.jsonl.gz": LINE, "tasks.json.gz": [TASK], "doccano.zip": DOCCANO}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused_unless_told(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(bomb(name, json.dumps(BOMBS[name]).encode()))
    code, _, err = run("check", name, "--max-size", "1M")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{name}: unpacks to more than 1 MB, and to over 100 times its size (if that is right" in err
    assert "--max-size" in err
    assert run("aggregate", name, "--max-size", "4M", "--method", "mv")[0] == 0
    assert run("aggregate", name, "--method", "mv")[0] == 0


def test_a_large_file_may_unpack_to_much(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(LINE | {"id": str(n), "note": zlib.crc32(str(n).encode())}) for n in range(20_000))
    (tmp_path / "crowd.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    assert len(quorate.read(tmp_path / "crowd.jsonl.gz", max_size="1K")) == 20_000


LONG_LINES = {
    "crowd.jsonl": json.dumps(LONG),
    "tasks.json": json.dumps([TASK | {"meta": {"x": LONG["meta"]}}]),
    "crowd.conll": "Ada B-PER " + " " * 3_000_000 + "\n",
    "table.csv": "task,worker,label\n1,ann,A\n2,ann," + "A" * 3_000_000,
    "sheet.csv": "token,ann\nAda,O\nsang," + "O" * 3_000_000,
    "mace.csv": "A,B\n" + "A," * 3_000_000,
}


@pytest.mark.parametrize("name", LONG_LINES)
def test_a_line_or_record_that_is_too_long_is_refused_unless_told(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / name).write_text(LONG_LINES[name])
    code, _, err = run("check", name, "--max-size", "1M")
    assert (code, err.count("\n")) == (2, 1)
    assert "of more than 1 MB (if that is right, raise --max-size)" in err
    _, _, err = run("check", name)
    assert "max-size" not in err


def test_a_large_array_of_small_records_on_one_line_is_read(tmp_path: Path) -> None:
    tasks = [TASK | {"id": n} for n in range(5000)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    assert len(quorate.read(tmp_path / "tasks.json", max_size=50_000)) == 5000


def test_a_docbin_and_a_table_that_unpack_to_much_are_refused(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    (tmp_path / "a.spacy").write_bytes(zlib.compress(b"\x00" * 3_000_000))
    words = pyarrow.array([["x" * 1000] * 1000] * 20)
    parquet.write_table(pyarrow.table({"tokens": words, "tags": words}), tmp_path / "b.parquet", compression="zstd")
    for name in ("a.spacy", "b.parquet"):
        code, _, err = run("check", name, "--max-size", "1M")
        assert (code, err.count("\n")) == (2, 1)
        assert "unpacks to more than 1 MB" in err


@pytest.mark.parametrize(
    ("name", "begins", "needs"),
    [
        ("a.spacy.gz", b"\x78\x9c", "spacy"),
        ("a.parquet.gz", b"PAR1", "pyarrow"),
        ("a.arrow.gz", b"ARROW1", "pyarrow"),
        ("a.xmi.gz", b"<xmi>", "cassis"),
        ("a.json.gz", b'{"%TYPES": {}}', "cassis"),
    ],
)
def test_a_format_that_is_read_whole_is_unpacked_no_further_than_it_may_be(
    name: str, begins: bytes, needs: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    (tmp_path / name).write_bytes(gzip.compress(begins + b" " * 20_000_000))
    unpacked = []
    read = gzip.GzipFile.read

    def counted(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        piece = read(self, size)
        unpacked.append(len(piece))
        return piece

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    code, _, err = run("check", name, "--max-size", "1M")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{name}: unpacks to more than 1 MB, and to over 100 times its size" in err
    assert sum(unpacked) < 5_000_000


def test_a_docbin_is_looked_through_without_copying_it_for_every_piece(tmp_path: Path) -> None:
    """What is left of it was once copied for each MiB that it unpacks to: a GB of copies for 40 MB of content."""
    content = zlib.compress(random.Random(0).randbytes(40_000_000), 0)
    with opened(str(written(tmp_path / "a.spacy", content))) as (stream, _):
        given = Input(stream, "a.spacy")
        tracemalloc.start()
        spacy_docs._check_size(content, given)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 10_000_000


@pytest.mark.parametrize("size", ["0", "-1", "1.5G", "many", ""])
def test_a_size_that_is_none_is_one_line(size: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "crowd.jsonl").write_text(json.dumps(LINE))
    code, _, err = run("check", "crowd.jsonl", "--max-size", size)
    assert (code, err.count("\n")) == (2, 1)
    assert "max-size" in err


def test_an_encoded_corpus_is_read_with_a_size_given(run: Run, tmp_path: Path) -> None:
    (tmp_path / "crowd.jsonl").write_text(json.dumps(LINE))
    assert run("encode", "crowd.jsonl", "-o", "crowd.qr", "--max-size", "1M")[0] == 0
    assert run("aggregate", "crowd.qr", "--max-size", "1M", "--method", "mv")[0] == 0


class Endless(http.server.BaseHTTPRequestHandler):
    """Says of every request something that is too long, or too deep."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[" * 200_000 if "deep" in self.path else b" " * 3_000_000 + b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Silent(http.server.ThreadingHTTPServer):
    """Says nothing of clients that hang up."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with Silent(("127.0.0.1", 0), Endless) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def test_an_answer_of_a_server_that_is_too_long_is_refused_unless_told(server: str) -> None:
    client = Client(server, "key", attempts=1, max_size="1M")
    with pytest.raises(quorate.errors.ServerError, match=r"an answer of more than 1 MB .*--max-size"):
        client.get("/api/projects/1/")
    with pytest.raises(quorate.errors.ServerError, match="more than 1 MB"):
        client.download("/api/projects/1/export", io.BytesIO())
    assert Client(server, "key", attempts=1).get("/api/projects/1/") == {}
    with pytest.raises(quorate.errors.ServerError, match="not JSON"):
        client.get("/deep")


def test_a_server_cannot_fill_the_memory_by_the_command(server: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "key")
    code, _, err = run("label-studio", "sync", "--url", server, "--project", 1, "--max-size", "1M", "--attempts", 1)
    assert (code, err.count("\n")) == (2, 1)
    assert "an answer of more than 1 MB" in err


DEEP = "[" * 100_000
NESTED = {
    "crowd.jsonl": '{"id": ' + DEEP,
    "tasks.json": '[{"data": {"text": ' + DEEP + "]" * 100_000 + '}, "annotations": []}]',
    "who.json": '{"a": ' + DEEP,
}


@pytest.mark.parametrize("name", NESTED)
def test_json_nested_without_end_is_one_line(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / name).write_text(NESTED[name])
    (tmp_path / "good.jsonl").write_text(json.dumps(LINE))
    for command in (
        ["check", name],
        ["check", "good.jsonl", "--annotators", name],
        ["check", "good.jsonl", "--map-labels", name],
        ["aggregate", "good.jsonl", "--settings", name],
        ["annotators", name],
        ["evaluate", name, "--gold", "good.jsonl"],
        ["aggregate", "good.jsonl", "--known", name],
    ):
        code, _, err = run(*command)
        assert (code, err.count("\n")) == (2, 1), (command, err[:300])
        assert "Traceback" not in err


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("Unable to allocate 3.7 GiB"), RecursionError("depth")])
def test_no_memory_and_no_end_are_one_line(
    error: Exception, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    (tmp_path / "good.jsonl").write_text(json.dumps(LINE))
    monkeypatch.setattr(quorate, "read", fail)
    code, _, err = run("aggregate", "good.jsonl")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("quorate: ")
