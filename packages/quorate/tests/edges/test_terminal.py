"""What a project lead sees on a terminal of 80 columns, and what a program gets with --json."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import typer.main
from rich.cells import cell_len

import quorate
import simulated_crowds as crowds
from processes import Start
from quorate import Corpus
from quorate.cli import app
from quorate.cli.tables import parts_that_fit, print_json
from quorate.cli.terminal import width_of, wrapped
from quorate.corpus.simulate import Behaviour, crowd
from quorate.formats.jsonl import save_corpus, write_corpus
from quorate.storage.files.atomic import written_whole
from running import Run

LONG = "annotator.with.a.long.name+{}@crowdsourcing-company.example.com"
IN_A_PROCESS = "from quorate.cli import main; main()"


def written(corpus: Corpus, path: Path) -> Path:
    with written_whole(path) as stream:
        write_corpus(corpus, stream)
    return path


@pytest.fixture
def small(tmp_path: Path, sample: Corpus) -> Path:
    return written(Corpus(sample.documents[:60]), tmp_path / "crowd.jsonl")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Fifty people with long names, and one whose name is in wide characters."""
    people = {LONG.format(n): Behaviour(miss=0.1 + 0.005 * n, confuse=0.05, invent=0.01) for n in range(50)}
    people["名前が長いアノテーターの名前が長い"] = Behaviour(miss=0.3, confuse=0.1)
    return written(crowd(crowds.sentences(120, seed=1), people, per_document=5, seed=1), tmp_path / "many.jsonl")


def on_a_terminal(start: Start, folder: Path, *arguments: str, columns: int = 80) -> list[str]:
    """The lines that a command shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
    environment["PYTHONPATH"] = str(Path(quorate.__file__).parents[1])
    command = [sys.executable, "-c", IN_A_PROCESS, *arguments]
    process = start(command, cwd=folder, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(ours)
    assert process.wait(timeout=60) == 0, shown
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    return [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").splitlines()]


def test_a_summary_on_a_terminal_begins_with_the_answer_and_is_wrapped(start: Start, small: Path) -> None:
    name = "a-folder-with-a-long-name-in-which-things-are-kept/and-a-file-with-a-long-name-too.jsonl"
    (small.parent / name).parent.mkdir()
    lines = on_a_terminal(start, small.parent, "aggregate", small.name, "-o", name, "--save", "m.quorate", "--verbose")
    said = [line for line in lines if line.startswith(("quorate: ", "         "))]
    assert said[0] == "quorate: 60 documents combined"
    assert said[1].startswith("quorate: agreement 0.")
    at = said.index("quorate: written to")
    assert said[at + 1 : at + 3] == [
        f"         {name}",
        "         (model: m.quorate)",
    ]  # what can be copied stays whole
    assert all(len(line) <= 80 for line in said if name not in line)
    assert any(line.startswith("quorate: confidence calibrated on held-out annotators") for line in said)


def test_a_line_in_a_pipe_is_not_wrapped(run: Run, small: Path) -> None:
    with small.open("a") as stream:
        stream.write('{"id": "z", "tokens": ["a", "b"], "annotations": {"x": ["O", "PERS"]}}\n')
    code, _, err = run("aggregate", small)
    assert (code, len(err.splitlines())) == (2, 1)
    assert len(err) > 80


def test_wide_characters_take_two_columns() -> None:
    line = "note: 名前が 長いアノ テーター"
    assert wrapped(line, 18) == "note: 名前が\n  長いアノ\n  テーター"
    assert all(cell_len(part) <= 18 for part in wrapped(line, 18).splitlines())


def test_a_stream_that_is_no_terminal_has_no_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    with (tmp_path / "out.txt").open("w") as stream:
        assert width_of(stream) is None
    ours, theirs = pty.openpty()
    with open(theirs, "w") as stream:
        assert width_of(stream) == 40
        monkeypatch.setenv("COLUMNS", "many")
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 66, 0, 0))
        assert width_of(stream) == 66
    os.close(ours)


@pytest.mark.parametrize(
    "arguments",
    [
        ("annotators", "m.quorate"),
        ("agreement", "many.jsonl"),
        ("next", "many.jsonl", "--model", "m.quorate", "-n", "5"),
        ("evaluate", "c.jsonl", "--gold", "many.jsonl", "--errors"),
        ("compare", "many.jsonl", "--methods", "mv,bsc-cm-notrans", "--errors"),
        ("tune", "many.jsonl", "--split", "all", "--method", "bsc-cm", "--grid", "temper=0.6,1", "--grid", "alpha0=1"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_tables_fit_and_numbers_stay_whole(run: Run, many: Path, arguments: tuple[str, ...]) -> None:
    assert run("aggregate", many, "-o", "c.jsonl", "--save", "m.quorate", "-q", "--method", "bsc-cm")[0] == 0
    code, out, err = run(*arguments)
    assert code == 0, err
    assert max(map(cell_len, out.splitlines())) <= 80
    assert "…" not in out
    assert not re.search(r"(^|\s)[\d.,]+[.,](\s|$)", out.replace("documents.", ""))  # no number ends in the middle


def test_a_table_that_is_too_wide_is_printed_in_parts() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        widths = rng.integers(1, 20, rng.integers(2, 15)).tolist()
        names = int(rng.integers(1, 3))
        parts = parts_that_fit(widths, names, 80)
        assert [place for part in parts for place in part] == list(range(names, len(widths)))
        for part in parts:
            shown = [*widths[:names], *(widths[place] for place in part)]
            assert sum(shown) + 2 * (len(shown) - 1) <= 80
    assert parts_that_fit([70, 30], 1, 80) == [[1]]  # what fits nowhere is shown all the same


def leaves(group: Any, *names: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, *names, name)
        else:
            yield " ".join([*names, name]), command


COMMANDS = dict(leaves(typer.main.get_command(app)))


def test_commands_are_listed_in_the_order_of_a_job() -> None:
    group: Any = typer.main.get_command(app)
    order = [
        *("init", "run", "status", "versions", "diff", "restore", "reviews"),
        *("check", "agreement", "aggregate", "predict", "update"),
        *("annotators", "report", "audit", "next"),
        *("evaluate", "compare", "tune"),
        *("convert", "encode", "label-studio", "plot"),
        *("formats", "methods", "datasets", "demo", "simulate-active"),
    ]
    assert [name for name in group.commands if name in order] == order
    panels = [command.rich_help_panel for command in group.commands.values()]
    assert len(list(dict.fromkeys(panels))) == sum(a != b for a, b in zip(panels, [None, *panels], strict=False))
    assert "Others" not in panels


def test_a_command_that_the_order_does_not_know_comes_last() -> None:
    from quorate.cli.common import InOrderOfAJob

    group = InOrderOfAJob(commands={name: typer.main.get_command(app).commands[name] for name in ("demo", "check")})  # type: ignore[attr-defined]
    assert list(group.commands) == ["check", "demo"]
    strange = InOrderOfAJob(commands={"strange": group.commands["demo"], "demo": group.commands["demo"]})
    assert list(strange.commands) == ["demo", "strange"]


@pytest.mark.parametrize("name", COMMANDS)
def test_flags_are_flags(name: str) -> None:
    for option in COMMANDS[name].params:
        if option.param_type_name == "option" and not option.is_flag:
            shown = str(option.metavar or "").lower()
            assert not {"true", "false", "yes", "no", "on", "off"} & set(shown.split("|")), option.name
        if option.param_type_name == "option" and option.is_flag:
            assert option.metavar == ""  # no type is shown
            if any(flag.startswith("--no-") for flag in option.opts):
                raise AssertionError(f"{option.opts} can only be said negatively")


@pytest.mark.parametrize(
    ("line", "counts"),
    [("text = false", False), ("text = true", True), ("no-text = true", False), ("no-text = false", True)],
)
def test_a_flag_can_be_written_in_a_project_either_way(run: Run, small: Path, line: str, counts: bool) -> None:
    Path("quorate.toml").write_text(f'inputs = ["{small.name}"]\n\n[aggregate]\nmethod = "bsc-cm"\n{line}\n')
    code, out, err = run("aggregate", "-o", "out.jsonl", "--json")
    assert code == 0, err
    assert parsed(out)["settings"]["text"] is counts
    code, out, err = run("run", "--json")
    assert code == 0, err
    assert parsed(out)["decided"]["settings"]["text"] is counts


WITHOUT_JSON = {
    "init": "writes a file to be edited",
    "convert": "writes a file in a format of choice",
    "encode": "writes a file",
    "datasets convert": "writes a file",
    "report": "writes a page",
    "plot annotators": "draws a figure",
    "plot trace": "draws a figure",
    "demo": "is to be looked at",
}
NEEDS_A_SERVER = ("label-studio sync",)  # run by the tests of that server
IN_A_PROJECT = {"run": (), "status": (), "versions": (), "diff": (), "restore": ("1",)}
CALLS = {
    "check": ("crowd.jsonl",),
    "agreement": ("crowd.jsonl",),
    "ambiguous": ("crowd.jsonl",),
    "aggregate": ("crowd.jsonl", "-o", "out.jsonl"),
    "predict": ("m.quorate", "crowd.jsonl", "-o", "out.jsonl"),
    "update": ("m.quorate", "crowd.jsonl", "-o", "out.jsonl"),
    "annotators": ("m.quorate",),
    "reviews": ("known.jsonl",),
    "audit plan": ("c.jsonl", "-n", "20", "-o", "plan.jsonl"),
    "audit result": ("c.jsonl", "--checked", "audit.jsonl"),
    "next": ("crowd.jsonl", "--model", "m.quorate", "-n", "3"),
    "evaluate": ("c.jsonl", "--gold", "crowd.jsonl"),
    "compare": ("crowd.jsonl", "--methods", "mv,bsc-cm"),
    "tune": ("crowd.jsonl", "--split", "all", "--method", "bsc-cm", "--grid", "temper=0.6,1"),
    "formats": (),
    "methods": (),
    "datasets list": (),
    "simulate-active": (
        *("crowd.jsonl", "--methods", "mv", "--repeats", "1"),
        *("--initial", "60", "--batch", "60", "--max-labels", "120"),
    ),
}


def begin_a_project(run: Run, small: Path) -> None:
    """Two versions."""
    Path("quorate.toml").write_text(f'inputs = ["{small.name}"]\n\n[aggregate]\nmethod = "bsc-cm"\n')
    for _ in range(2):
        assert run("run", "--fresh", "-q")[0] == 0


@pytest.fixture
def project(run: Run, small: Path) -> Path:
    """A crowd, its consensus, its model, and an audit that somebody has done."""
    fit = ("--method", "bsc-cm", "--save", "m.quorate", "-q")
    assert run("aggregate", small, "-o", "c.jsonl", *fit)[0] == 0
    assert run("audit", "plan", "c.jsonl", "-n", 20, "-o", "audit.jsonl", "-q")[0] == 0
    lines = [json.loads(line) | {"checked": True} for line in Path("audit.jsonl").read_text().splitlines()]
    Path("audit.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    known = [{"id": line["id"], "tokens": line["tokens"], "tags": ["O"] * len(line["tokens"])} for line in lines]
    Path("known.jsonl").write_text("".join(json.dumps(line | {"reviewer": "ann"}) + "\n" for line in known))
    return small.parent


@pytest.fixture
def wide_project(run: Run, many: Path) -> Path:
    """The same of a crowd whose annotators have long names, in a project with two versions that differ in much."""
    many.rename("crowd.jsonl")
    fit = ("--method", "bsc-cm", "--save", "m.quorate", "-q")
    assert run("aggregate", "crowd.jsonl", "-o", "c.jsonl", *fit)[0] == 0
    assert run("audit", "plan", "c.jsonl", "-n", 20, "-o", "audit.jsonl", "-q")[0] == 0
    lines = [json.loads(line) | {"checked": True} for line in Path("audit.jsonl").read_text().splitlines()]
    Path("audit.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for who in ("a reviewer of a long name", "another reviewer of a name that is even longer"):
        known = [{"id": line["id"], "tokens": line["tokens"], "tags": ["O"] * len(line["tokens"])} for line in lines]
        known[0]["tags"] = [f"B-{'PER' if who.startswith('another') else 'LOC'}", *known[0]["tags"][1:]]
        name = f"{'review' if who.startswith('another') else 'known'}.jsonl"
        Path(name).write_text("".join(json.dumps(line | {"reviewer": who}) + "\n" for line in known))
    options = (
        'method = "bsc-cm"',
        'method = "bsc-cm"\nprobabilities = true\nshares = true\nmap-labels = { PER = "WHO" }',
    )
    for version in options:
        Path("quorate.toml").write_text(f'inputs = ["crowd.jsonl"]\n\n[aggregate]\n{version}\n')
        assert run("run", "-q")[0] == 0
    return Path.cwd()


OTHERS = {
    "init": ("crowd.jsonl", "--force"),
    "convert": ("crowd.jsonl", "-o", "out.conll"),
    "encode": ("crowd.jsonl", "-o", "out.qr"),
    "report": ("crowd.jsonl", "-o", "out.html"),
    "demo": (),
}
REVIEWED = ("known.jsonl", "review.jsonl", "--input", "crowd.jsonl", "--consensus", "c.jsonl")


@pytest.mark.parametrize("name", [*(CALLS | IN_A_PROJECT | OTHERS)])
def test_what_every_command_says_fits_on_a_terminal(
    run: Run, wide_project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("quorate.cli.common.width_of", lambda _: 80)
    arguments = REVIEWED if name == "reviews" else (CALLS | IN_A_PROJECT | OTHERS)[name]
    if name == "status":  # which has most to tell before a run
        Path("quorate.toml").write_text('inputs = ["crowd.jsonl"]\n\n[aggregate]\nlayers = "auto"\n')
    verbose = ("--verbose",) if name in ("aggregate", "predict") else ()
    code, out, err = run(
        "--no-project" if name not in IN_A_PROJECT else "--project", *name.split(), *arguments, *verbose
    )
    assert code in (0, 1), err
    shown = (out + err).splitlines()
    assert shown
    assert [line for line in shown if cell_len(line) > 80] == []


def no_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


def parsed(text: str) -> Any:
    return json.loads(text, parse_constant=no_constant)


def documented_keys(name: str) -> set[str]:
    page = (Path(__file__).parents[4] / "docs" / "command-line.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{name}` \| (.*) \|$", page, flags=re.M)
    assert row, f"{name} has no row in docs/command-line.md"
    keys = set(re.findall(r"`([a-z0-9_]+)`", row[1]))
    return keys | documented_keys("versions") if "what `versions` has" in row[1] else keys


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_prints_a_result_prints_it_as_json(run: Run, project: Path, name: str) -> None:
    has_json = any("--json" in option.opts for option in COMMANDS[name].params)
    if name in WITHOUT_JSON:
        assert not has_json
        return
    assert has_json, f"{name!r} prints no JSON: give it the option Json, or say in WITHOUT_JSON why it has none"
    if name in NEEDS_A_SERVER:
        return
    if name in IN_A_PROJECT:
        begin_a_project(run, project / "crowd.jsonl")
    code, out, err = run(*name.split(), *(CALLS | IN_A_PROJECT)[name], "--json")
    assert code == 0, err
    found = [parsed(line) for line in out.splitlines()]
    assert found
    assert len(found) == (12 if name == "annotators" else 1)  # one line; of annotators one each
    records = [record for one in found for record in (one if isinstance(one, list) else [one])]
    keys = {key for record in records for key in record}
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", key) for key in keys)
    if name not in ("annotators", "formats", "methods", "datasets list"):  # of which the page tells in other words
        assert keys <= documented_keys(name)


def test_json_of_a_fit_says_what_its_summary_says(run: Run, small: Path) -> None:
    outputs = ("-o", "sure.jsonl", "--review", "rest.jsonl", "--meta", "meta.json")
    code, out, err = run("aggregate", small, *outputs, "--accept", 0.9, "--json")
    assert (code, err) == (0, "")
    found = parsed(out)
    assert found["documents"] == 60
    assert found["written"] == {"consensus": "sure.jsonl", "review": "rest.jsonl", "settings": "meta.json"}
    assert found["agreement"] == pytest.approx(quorate.score.token_alpha(quorate.read(small)), abs=1e-12)  # unrounded
    assert found["f1"]["by"] == "gold"
    assert found["f1"]["low"] <= found["f1"]["value"] <= found["f1"]["high"]
    assert 0 < found["accepted"]["cut"] < 1
    assert found["accepted"]["documents"] == len(Path("sure.jsonl").read_text().splitlines())
    assert found["accepted"]["review"] == len(Path("rest.jsonl").read_text().splitlines())
    assert found["calibration"] == json.loads(Path("meta.json").read_text())["calibration"]
    assert (found["duplicates"], found["abstaining"], found["correlated"], found["tagger_rounds"]) == ([], [], [], [])
    assert found["notes"] == ["the gold in the input was not used (--known inline uses it)"]


def test_json_of_annotators_who_share_no_document_has_no_agreement(run: Run, tmp_path: Path) -> None:
    documents = [replace(one, gold=None) for one in crowds.disjoint_batches(16)]
    alone = Corpus([replace(one, annotations=dict([next(iter(one.annotations.items()))])) for one in documents])
    written(alone, tmp_path / "few.jsonl")
    code, out, _ = run("aggregate", "few.jsonl", "-o", "out.jsonl", "--json")
    assert code == 0
    found = parsed(out)
    assert found["agreement"] is found["f1"] is None
    err = run("aggregate", "few.jsonl", "-o", "out.jsonl")[2]
    to_know = "quorate audit plan out.jsonl -n 16 -o audit.jsonl"
    assert f"quorate: no agreement to measure; F1 unknown: {to_know}\n" in err


def test_a_summary_says_when_confidence_is_not_calibrated(run: Run, tmp_path: Path) -> None:
    alone, several, told = tmp_path / "alone.jsonl", tmp_path / "several.jsonl", "note: confidence is not calibrated"
    documents = quorate.sample().documents[:40]
    one_each = [replace(one, annotations=dict([next(iter(one.annotations.items()))])) for one in documents]
    save_corpus(Corpus(one_each), alone)
    save_corpus(Corpus(documents), several)
    code, _, err = run("aggregate", alone, "-o", "c.jsonl")
    assert (code, [line.startswith(f"quorate: {told}") for line in err.splitlines()].count(True)) == (0, 1)
    notes = json.loads(run("aggregate", alone, "-o", "c.jsonl", "--json")[1])["notes"]
    assert any(f"note: {note}".startswith(told) for note in notes)
    assert told not in run("aggregate", alone, "-o", "c.jsonl", "--no-calibrate")[2]
    assert told not in run("aggregate", several, "-o", "c.jsonl")[2]


def test_a_summary_says_what_was_changed_in_the_crowd(run: Run, tmp_path: Path) -> None:
    every = crowds.every_kind(200)
    twice = [
        replace(one, annotations={**one.annotations, "ann+1": one.annotations["ann"]})
        if "ann" in one.annotations
        else one
        for one in every
    ]
    save_corpus(Corpus(twice, profiles=every.profiles), tmp_path / "crowd.jsonl")
    (tmp_path / "who.json").write_text(json.dumps({name: one.plain() for name, one in every.profiles.items()}))
    asked = ("aggregate", "crowd.jsonl", "--annotators", "who.json", "-o", "c.jsonl")
    told = run(*asked)[2].splitlines()
    found = parsed(run(*asked, "--json")[1])
    assert found["duplicates"] == [["ann", "ann+1"]]
    assert found["abstaining"] == ["gazetteer", "regex", "titles"]
    assert found["correlated"] == [["llm-0", "llm-1", "llm-2"]]
    assert "quorate: note: duplicates, each group merged into one annotator: (ann, ann+1)" in told
    assert "quorate: note: sources that abstain, whose O is weak evidence: gazetteer, regex, titles" in told
    correlated = "sources with correlated errors, whose labels count less: llm-0, llm-1, llm-2"
    assert f"quorate: note: {correlated}" in told
    assert correlated not in run(*asked, "--no-adapt")[2]


def test_layers_are_told_one_by_one(run: Run, tmp_path: Path) -> None:
    text = "the University of Ulm closed"
    inner, outer = {"start": 18, "end": 21, "label": "LOC"}, {"start": 4, "end": 21, "label": "ORG"}
    lines = [
        {"id": str(n), "text": text, "annotations": {who: [outer, inner] for who in ("ann", "bob")}} for n in range(3)
    ]
    (tmp_path / "nested.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, err = run("aggregate", "nested.jsonl", "--layers", "auto", "-o", "out.jsonl", "--json")
    assert code == 0, err
    found = parsed(out)
    assert (found["documents"], found["written"]) == (3, {"consensus": "out.jsonl"})
    assert len(found["layers"]) == 2
    assert {tuple(one["types"]) for one in found["layers"].values()} == {("LOC",), ("ORG",)}
    said = run("aggregate", "nested.jsonl", "--layers", "auto", "-o", "out.jsonl")[2].splitlines()
    assert said[:3] == [
        "quorate: 3 documents combined in 2 layers",
        "quorate: agreement 1.00 (Krippendorff's alpha); F1 unknown: quorate audit plan out.jsonl -n 3 -o audit.jsonl",
        "quorate: written to out.jsonl",
    ]
    for name in found["layers"]:
        at = said.index(f"quorate: layer {name}: 3 documents combined")
        assert said[at + 1] == f"quorate: layer {name}: agreement 1.00 (Krippendorff's alpha)"


@pytest.mark.parametrize("command", [("aggregate", "crowd.jsonl"), ("predict", "m.quorate", "crowd.jsonl")])
def test_json_and_a_consensus_do_not_both_go_to_standard_output(
    run: Run, project: Path, command: tuple[str, ...]
) -> None:
    code, out, err = run(*command, "--json")
    assert (code, out) == (2, "")
    assert err == "quorate: --json and the output cannot both go to standard output (give a file with -o)\n"


def test_a_plan_and_a_list_are_not_mixed_with_json(run: Run, project: Path) -> None:
    assert run("audit", "plan", "c.jsonl", "-n", 20, "--json")[0] == 2
    code, out, err = run("next", "crowd.jsonl", "--model", "m.quorate", "--as", "csv", "--json")
    assert (code, out) == (2, "")
    assert "--json and --as" in err
    code, out, _ = run("next", "crowd.jsonl", "--model", "m.quorate", "-n", 3, "-o", "list.csv", "--json")
    assert code == 0
    assert len(parsed(out)["suggestions"]) == 3
    assert len(Path("list.csv").read_text().splitlines()) == 4


def test_what_is_no_number_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"f1": float("nan"), "bounds": np.array([[1.5, np.inf]]), "n": np.int64(3), "name": "Zoë\x1b"})
    assert parsed(capsys.readouterr().out) == {"f1": None, "bounds": [[1.5, None]], "n": 3, "name": "Zoë\x1b"}
