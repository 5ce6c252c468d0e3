"""The command that goes on from a saved model: what it writes, what it leaves, and what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import quorate
from by_name import loaded
from processes import Start
from quorate import BSC, Corpus, Document
from quorate.cli import app
from quorate.errors import QuorateError
from quorate.formats.jsonl import write_corpus


def written(path: Path, documents: tuple[Document, ...] | list[Document]) -> str:
    with path.open("wb") as stream:
        write_corpus(Corpus(documents), stream)
    return str(path)


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines()]


def ran(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["update", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "crowd.quorate"
    BSC("cm", max_iter=3).fit(Corpus(quorate.sample().documents[:60])).save(path)
    return path


def test_new_documents_and_more_labels_are_those_of_an_update_in_memory(model: Path, tmp_path: Path) -> None:
    documents = quorate.sample().documents[:80]
    out = tmp_path / "consensus.jsonl"
    expected = loaded(model).update(Corpus(documents[50:]))
    expected.result_.write(tmp_path / "expected.jsonl")
    said = ran(str(model), written(tmp_path / "new.jsonl", documents[50:]), "-o", str(out))
    assert "20 new documents, 0 changed, 10 unchanged" in said
    assert out.read_bytes() == (tmp_path / "expected.jsonl").read_bytes()
    assert ids(out) == [one.id for one in documents]
    assert loaded(model).meta_["documents"] == 80
    who = min(documents[3].annotations)
    changed = replace(
        documents[3], annotations={who: ("O",) * len(documents[3].tokens), "zoë": documents[3].annotations[who]}
    )
    said = ran(str(model), written(tmp_path / "more.jsonl", [changed]), "-o", str(out), "--only-new")
    assert "0 new documents, 1 changed, 0 unchanged" in said
    assert ids(out) == [documents[3].id]
    assert "zoë" in loaded(model).annotators_.names


def test_the_same_labels_again_leave_the_file_as_it_is(model: Path, tmp_path: Path) -> None:
    export, before = written(tmp_path / "export.jsonl", quorate.sample().documents[:60]), model.read_bytes()
    for _ in range(2):
        assert "0 new documents, 0 changed, 60 unchanged" in ran(str(model), export, "-o", str(tmp_path / "out.jsonl"))
    assert model.read_bytes() == before
    assert ids(tmp_path / "out.jsonl") == [one.id for one in quorate.sample().documents[:60]]


def test_another_name_leaves_the_old_model(model: Path, tmp_path: Path) -> None:
    before, other = model.read_bytes(), tmp_path / "tuesday.quorate"
    new = written(tmp_path / "new.jsonl", quorate.sample().documents[60:70])
    told = ran(str(model), new, "-o", str(tmp_path / "out.jsonl"), "--save", str(other), "--json")
    record = json.loads(told)
    assert (record["new"], record["changed"], record["unchanged"], record["documents"]) == (10, 0, 0, 70)
    assert record["model"] == str(other)
    assert model.read_bytes() == before
    assert loaded(other).meta_["documents"] == 70


def test_the_old_model_may_be_in_a_folder_that_is_read_only(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = written(tmp_path / "new.jsonl", quorate.sample().documents[60:62])
    mine = tmp_path / "mine"
    mine.mkdir()
    may = os.access

    def access(path: str | Path, mode: int) -> bool:  # rights do not bind the administrator, whom tests may run as
        return may(path, mode) and (Path(path) not in (model, model.parent) or not mode & os.W_OK)

    monkeypatch.setattr(os, "access", access)
    ran(str(model), new, "-o", str(mine / "out.jsonl"), "--save", str(mine / "tuesday.quorate"))
    assert loaded(mine / "tuesday.quorate").meta_["documents"] == 62
    with pytest.raises(QuorateError, match="read-only for you"):
        CliRunner().invoke(app, ["update", str(model), new, "-o", str(mine / "out.jsonl")], catch_exceptions=False)


def test_known_labels_may_be_of_documents_that_the_model_has(model: Path, tmp_path: Path) -> None:
    first = quorate.sample()[0]
    known = tmp_path / "checked.jsonl"
    known.write_text(json.dumps({"id": first.id, "tags": ["O"] * len(first.tokens)}))
    said = ran(str(model), "--known", str(known), "-o", str(tmp_path / "out.jsonl"))
    assert "0 new documents, 1 changed, 0 unchanged" in said
    line = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert set(line["tags"]) == {"O"}
    assert loaded(model).decided_documents() == {first.id}
    assert str(known) in loaded(model).meta_["inputs"]


def test_without_documents(model: Path, tmp_path: Path) -> None:
    documents, out = quorate.sample().documents, str(tmp_path / "out.jsonl")
    new = written(tmp_path / "new.jsonl", documents[60:70])
    ran(str(model), new, "-o", out, "--without-documents")
    assert not loaded(model).has_documents
    assert "saved without its documents" in ran(str(model), written(tmp_path / "b.jsonl", documents[70:75]), "-o", out)
    assert ids(Path(out)) == [one.id for one in documents[70:75]]
    crowd = written(tmp_path / "crowd.jsonl", documents[:40])
    command = ["aggregate", crowd, "--method", "bsc-cm", "-o", out, "--without-documents", "-q"]
    assert CliRunner().invoke(app, [*command, "--save", str(tmp_path / "m")]).exit_code == 0
    assert not loaded(tmp_path / "m").has_documents
    with pytest.raises(QuorateError, match="goes with --save"):
        CliRunner().invoke(app, command, catch_exceptions=False)


def test_mistakes_are_said_and_change_nothing(model: Path, tmp_path: Path) -> None:
    before, out = model.read_bytes(), tmp_path / "out.jsonl"
    strange = written(tmp_path / "strange.jsonl", [Document("x", ("Ada",), {"ann": ("B-VESSEL",)})])
    other = written(
        tmp_path / "other.jsonl", [replace(quorate.sample()[0], tokens=("x",) * len(quorate.sample()[0].tokens))]
    )
    tagger, crf = tmp_path / "crf.quorate", quorate.CRFMA(max_iter=1)
    crf.fit(Corpus(quorate.sample().documents[:10])).save(tagger)
    for arguments, message in (
        ([str(model), strange], "'B-VESSEL' is not among the model's labels"),
        ([str(model), other], "other tokens than when this document was fitted"),
        ([str(model)], "nothing to update with"),
        ([str(model), strange, "-o", str(model)], "by its name this is a model"),
        ([str(model), strange, "-o", str(model), "--to", "jsonl"], "which would be lost"),
        ([str(model), str(tmp_path / "none.jsonl")], "no such file"),
        ([str(tagger), other], "cannot go on with new labels"),
        ([str(model), other, "--passes", "-1"], "passes must be 0 or more"),
        ([str(model), other, "--json"], "cannot both go to standard output"),
    ):
        with pytest.raises(QuorateError, match=message):
            CliRunner().invoke(
                app, ["update", *(["-o", str(out)] if len(arguments) == 2 else []), *arguments], catch_exceptions=False
            )
    assert model.read_bytes() == before
    assert not out.exists()


def test_two_updates_at_once_do_not_meet(model: Path, tmp_path: Path, start: Start) -> None:
    """The second is refused, or waits and goes on from what the first has left."""
    first, second = (
        written(tmp_path / f"{part.start}.jsonl", quorate.sample().documents[part])
        for part in (slice(60, 320), slice(0, 5))
    )
    process = start(
        [sys.executable, "-m", "quorate", "update", str(model), first], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.read(1)  # it has the model, and is stopped while nobody reads what it writes
    waiting = ["update", str(model), second, "-o", str(tmp_path / "second.jsonl"), "-q"]
    with pytest.raises(QuorateError, match="another process works on this file \\(wait for it: --wait\\)"):
        CliRunner().invoke(app, waiting, catch_exceptions=False)
    elsewhere = [*waiting, "--save", str(tmp_path / "other.quorate")]
    assert CliRunner().invoke(app, elsewhere, catch_exceptions=False).exit_code == 0
    reader = threading.Thread(target=process.communicate)
    threading.Timer(0.3, reader.start).start()
    assert CliRunner().invoke(app, [*waiting, "--wait", "--passes", "1"], catch_exceptions=False).exit_code == 0
    assert process.wait(60) == 0
    assert loaded(model).meta_["documents"] == 320


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_update_that_is_stopped_leaves_the_old_model(
    how: signal.Signals, model: Path, tmp_path: Path, start: Start
) -> None:
    """Stopped where it is about to write, which a pipe that nobody reads sees to."""
    before = model.read_bytes()
    new = written(tmp_path / "new.jsonl", quorate.sample().documents[60:])
    command = [sys.executable, "-m", "quorate", "update", str(model), new]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)  # the consensus is on its way, and longer than a pipe holds
    time.sleep(0.2)
    process.send_signal(how)
    process.wait(60)
    assert process.returncode in (130, -how)
    assert model.read_bytes() == before
    assert loaded(model).meta_["documents"] == 60


def test_an_input_of_another_crowd_is_warned_of(tmp_path: Path, sample: Corpus) -> None:
    model, crowd = str(tmp_path / "m.quorate"), sample.documents[:20]
    BSC("cm", max_iter=2).fit(Corpus(crowd)).save(model)
    warning = "warning: the input has no annotator and no document of the model: is it of another crowd?"
    again = written(tmp_path / "again.jsonl", [replace(one, annotations={"zoe": one.gold or ()}) for one in crowd])
    assert warning not in ran(model, again, "-o", str(tmp_path / "c.jsonl"))
    more = written(tmp_path / "more.jsonl", sample.documents[20:30])
    assert warning not in ran(model, more, "-o", str(tmp_path / "c.jsonl"))
    others = [Document(f"x{n}", ("Ada", "sang"), {"new": ("B-PER", "O")}) for n in range(9)]
    assert warning in ran(model, written(tmp_path / "others.jsonl", others), "-o", str(tmp_path / "c.jsonl"))
