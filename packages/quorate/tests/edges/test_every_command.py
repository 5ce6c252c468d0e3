"""Every command on every kind of annotation in several formats; what is written is read by readers of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from running import Run

Words = dict[str, set[tuple[str, str]]]
"""For every document the labels and words of its spans."""

TOWNS = ["Bath", "York", "Leeds", "Derby", "Truro", "Ripon", "Wells", "Ely", "Hull", "Stoke", "Luton", "Poole"]
FLAT = {"ORG": "{town} Spa", "EVENT": "spring cup"}
NESTED = {**FLAT, "LOC": "{town}"}
DEEP = {**NESTED, "EVENT2": "cup"}  # an event inside of an event
APART = {**NESTED, "PRIZE": "won … cup"}  # in two pieces, around what is not of it


class Kind(NamedTuple):
    """How a kind of annotation is made, and what a command must be told of it."""

    spans: dict[str, str]
    options: tuple[str, ...]


KINDS = {
    "plain": Kind(FLAT, ()),
    "layered": Kind(DEEP, ("--layers", "auto")),
    "discontinuous": Kind(APART, ("--layers", "auto")),
}
FORMATS = ["jsonl", "label-studio", "brat"]
ANNOTATORS = ("ann", "bob", "cho")


def text_of(number: int) -> str:
    return f"{'👋 ' * (number % 2)}{TOWNS[number]} Spa won the spring cup in café {number}"


def marks_of(number: int, kind: Kind, left_out: str = "") -> list[dict[str, Any]]:
    """The true spans of a document, by code points."""
    text, found = text_of(number), []
    for name, words in kind.spans.items():
        spoken = words.format(town=TOWNS[number]).split(" … ")
        pieces = [[text.index(part), text.index(part) + len(part)] for part in spoken]
        if name != left_out:
            mark = {"start": pieces[0][0], "end": pieces[-1][1], "label": name.rstrip("2"), "text": " ".join(spoken)}
            found.append(mark | ({"pieces": pieces} if len(pieces) > 1 else {}))
    return found


def truth(kind: Kind) -> Words:
    return {
        str(number + 1): {(mark["label"], mark["text"]) for mark in marks_of(number, kind)}
        for number in range(len(TOWNS))
    }


def said_of(number: int, kind: Kind) -> dict[str, list[dict[str, Any]]]:
    """What the annotators mark: one of them forgets something now and then."""
    forgotten = {ANNOTATORS[number % 3]: list(kind.spans)[number % len(kind.spans)]} if number % 4 == 0 else {}
    return {name: marks_of(number, kind, forgotten.get(name, "")) for name in ANNOTATORS}


def write_jsonl(folder: Path, kind: Kind) -> list[str]:
    lines = [
        {"id": str(n + 1), "text": text_of(n), "annotations": said_of(n, kind), "gold": marks_of(n, kind)}
        for n in range(len(TOWNS))
    ]
    (folder / "crowd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return ["crowd.jsonl"]


def write_label_studio(folder: Path, kind: Kind) -> list[str]:
    def result(marks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Regions, and relations between those that are pieces of one."""
        regions, relations = [], []
        for number, mark in enumerate(marks):
            pieces = mark.get("pieces") or [[mark["start"], mark["end"]]]
            words = mark["text"].split(" ") if len(pieces) > 1 else [mark["text"]]
            for n, ((start, end), spoken) in enumerate(zip(pieces, words, strict=True)):
                value = {"start": start, "end": end, "text": spoken, "labels": [mark["label"]]}
                control = {"type": "labels", "from_name": "label", "to_name": "text"}
                regions.append({"id": f"r{number}-{n}", **control, "value": value})
                if n:
                    ends = {"from_id": f"r{number}-{n - 1}", "to_id": f"r{number}-{n}"}
                    relations.append({"type": "relation", **ends, "labels": ["continues"]})
        return regions + relations

    tasks = []
    for n in range(len(TOWNS)):
        answers: list[dict[str, Any]] = [
            {"completed_by": {"email": who}, "result": result(m)} for who, m in said_of(n, kind).items()
        ]
        answers.append({"completed_by": {"email": "eve"}, "ground_truth": True, "result": result(marks_of(n, kind))})
        tasks.append({"id": n + 1, "data": {"text": text_of(n)}, "annotations": answers})
    (folder / "crowd.json").write_text(json.dumps(tasks))
    return ["crowd.json"]


def places(mark: dict[str, Any]) -> str:
    """The pieces of a span as brat has them."""
    return ";".join(f"{start} {end}" for start, end in mark.get("pieces") or [[mark["start"], mark["end"]]])


def write_brat(folder: Path, kind: Kind) -> list[str]:
    for n in range(len(TOWNS)):
        for who, marks in said_of(n, kind).items():
            (folder / "brat" / who).mkdir(parents=True, exist_ok=True)
            (folder / "brat" / who / f"{n + 1}.txt").write_text(text_of(n))
            lines = [f"T{i}\t{mark['label']} {places(mark)}\t{mark['text']}\n" for i, mark in enumerate(marks, 1)]
            (folder / "brat" / who / f"{n + 1}.ann").write_text("".join(lines))
    gold = [{"id": str(n + 1), "text": text_of(n), "gold": marks_of(n, kind)} for n in range(len(TOWNS))]
    (folder / "truth.jsonl").write_text("\n".join(map(json.dumps, gold)))
    return ["brat", "truth.jsonl"]


WRITERS: dict[str, Callable[[Path, Kind], list[str]]] = {
    "jsonl": write_jsonl,
    "label-studio": write_label_studio,
    "brat": write_brat,
}


def cut(text: str, span: dict[str, Any]) -> str:
    """The words at a place, or at several, which must be those that the file gives with it."""
    words: str = span["text"]
    pieces = span.get("pieces") or [[span["start"], span["end"]]]
    assert (pieces[0][0], pieces[-1][1]) == (span["start"], span["end"])
    assert " ".join(text[start:end] for start, end in pieces) == words
    return words


def read_consensus(path: Path) -> Words:
    found: Words = {}
    for line in map(json.loads, path.read_text().splitlines()):
        spans = line["spans"]
        found[line["id"]] = {(s["label"], cut(line["text"], s)) for s in spans}
        for span in spans:
            first, last = line["offsets"][span["token_start"]][0], line["offsets"][span["token_end"] - 1][1]
            assert (first, last) == (span["start"], span["end"])
    return found


def read_annotations(path: Path) -> dict[str, Words]:
    """JSONL with spans or tags, by annotator."""
    found: dict[str, Words] = {}
    for line in map(json.loads, path.read_text().splitlines()):
        for who, said in line["annotations"].items():
            if said and isinstance(said[0], str):
                said = spans_of_tags(said, line["offsets"], line["text"])
            words = {(s["label"], cut(line["text"], s)) for s in said}
            found.setdefault(who, {})[line["id"]] = words
    return found


def spans_of_tags(tags: list[str], offsets: list[list[int]], text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for tag, (start, end) in zip(tags, offsets, strict=True):
        if tag[:2] == "B-":
            found.append({"start": start, "end": end, "label": tag[2:]})
        elif tag[:2] == "I-":
            found[-1]["end"] = end
    return [span | {"text": text[span["start"] : span["end"]]} for span in found]


def read_tasks(path: Path, key: str) -> dict[str, Words]:
    """Label Studio's tasks, by annotator or model."""
    found: dict[str, Words] = {}
    for task in json.loads(path.read_text()):
        for answer in task[key]:
            words = {(label, cut(task["data"]["text"], span)) for label, span in joined(answer["result"])}
            name = (
                "gold" if answer.get("ground_truth") else str(answer.get("completed_by", answer.get("model_version")))
            )
            found.setdefault(name, {})[str(task["id"])] = words
    return found


def joined(result: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The labels and places of regions; those between which a relation says that one continues the other are one."""
    before = {one["to_id"]: one["from_id"] for one in result if one["type"] == "relation"}
    spans: dict[str, tuple[str, dict[str, Any]]] = {}
    for region in result:
        if region["type"] == "relation":
            continue
        value, name = region["value"], region["id"]
        label, whole = value[region["type"]][0], value
        if name in before:
            label, first = spans.pop(before[name])
            whole = {
                "start": first["start"],
                "end": value["end"],
                "text": f"{first['text']} {value['text']}",
                "pieces": [*first.get("pieces", [[first["start"], first["end"]]]), [value["start"], value["end"]]],
            }
        spans[name] = (label, whole)
    return list(spans.values())


def read_brat(folder: Path) -> Words:
    found: Words = {}
    for file in folder.glob("*.ann"):
        text = file.with_suffix(".txt").read_text()
        found[file.stem] = set()
        for line in file.read_text().splitlines():
            if line.startswith("T"):
                _, place, words = line.split("\t")
                label, _, offsets = place.partition(" ")
                pieces = [[int(offset) for offset in piece.split(" ")] for piece in offsets.split(";")]
                whole = {"start": pieces[0][0], "end": pieces[-1][1], "text": words, "pieces": pieces}
                found[file.stem].add((label, cut(text, whole)))
    return found


class Case(NamedTuple):
    run: Run
    kind: Kind
    inputs: list[str]

    def __call__(self, command: str, *arguments: object, code: int = 0) -> tuple[str, str]:
        got, out, err = self.run(*command.split(), *arguments)
        assert got == code, err
        return out, err

    def reads(self, command: str, *arguments: object, code: int = 0) -> tuple[str, str]:
        """A command that reads the annotations."""
        return self(command, *self.inputs, *self.kind.options, *arguments, code=code)


@pytest.fixture(params=[(kind, form) for kind in KINDS for form in FORMATS], ids=lambda pair: f"{pair[0]}-{pair[1]}")
def case(request: pytest.FixtureRequest, run: Run, tmp_path: Path) -> Case:
    kind, form = request.param
    return Case(run, KINDS[kind], WRITERS[form](tmp_path, KINDS[kind]))


def is_layered(case: Case) -> bool:
    return bool(case.kind.options)


def test_check_and_agreement(case: Case) -> None:
    code, out, err = case.run("check", *case.inputs, *case.kind.options)
    assert code in (0, 1), err
    assert "left out" not in out
    out, _ = case.reads("agreement", "--json")
    found = json.loads(out)
    assert 0.8 < found["spans_matched"] < 1
    assert ("layers" in found) == is_layered(case)


def test_ambiguous_documents_are_listed(case: Case) -> None:
    out, _ = case.reads("ambiguous", "-n", "5", "--json")
    found = json.loads(out)
    assert len(found) <= 5 * len({one.get("layer") for one in found})
    assert all(("layer" in one) == is_layered(case) and {"id", "tokens", "words"} <= set(one) for one in found)
    out, _ = case.reads("ambiguous", "-n", "5")
    assert "two readings" in out


def test_aggregate_keeps_everything_that_is_asked_for(case: Case) -> None:
    _, err = case.reads(
        "aggregate",
        *("--method", "bsc-cm", "-o", "c.jsonl", "--save", "m.quorate", "--meta", "meta.json", "--report", "r.html"),
    )
    assert "left out" not in err
    assert read_consensus(Path("c.jsonl")) == truth(case.kind)
    assert ("layers" in json.loads(Path("meta.json").read_text())) == is_layered(case)
    assert Path("r.html").read_text().startswith("<!doctype html>")
    for form in ("label-studio", "brat"):
        case.reads("aggregate", "--method", "bsc-cm", "-o", f"out-{form}", "--to", form, "-q")
    assert read_tasks(Path("out-label-studio"), "predictions")["quorate bsc-cm"] == truth(case.kind)
    assert read_brat(Path("out-brat")) == truth(case.kind)


def test_aggregate_parts_documents(case: Case) -> None:
    case.reads("aggregate", "--method", "mv", "-o", "sure.jsonl", "--accept", "0.99", "--review", "rest.jsonl")
    sure, rest = read_consensus(Path("sure.jsonl")), read_consensus(Path("rest.jsonl"))
    assert {**sure, **rest} == truth(case.kind)
    assert sure
    assert rest


def test_known_labels_come_back(case: Case) -> None:
    wrong = marks_of(4, case.kind)[1:]  # nobody says so, but it is known
    Path("known.jsonl").write_text(json.dumps({"id": "5", "text": text_of(4), "gold": wrong}))
    case.reads("aggregate", "--method", "bsc-cm", "-o", "c.jsonl", "--known", "known.jsonl")
    found = read_consensus(Path("c.jsonl"))
    assert found.pop("5") == {(mark["label"], mark["text"]) for mark in wrong}
    assert found == {name: words for name, words in truth(case.kind).items() if name != "5"}
    case.reads("aggregate", "--method", "bsc-cm", "-o", "again.jsonl", "--known", "c.jsonl", "-q")
    assert read_consensus(Path("again.jsonl")) == read_consensus(Path("c.jsonl"))
    case.reads("aggregate", "--method", "bsc-cm", "-o", "gold.jsonl", "--known", "inline", "-q")
    assert read_consensus(Path("gold.jsonl")) == truth(case.kind)


def test_models_are_applied_and_shown(case: Case) -> None:
    case.reads("aggregate", "--method", "bsc-cm", "-o", "c.jsonl", "--save", "m.quorate", "-q")
    case("predict m.quorate", *case.inputs, "-o", "p.jsonl", "-q")
    assert read_consensus(Path("p.jsonl")) == truth(case.kind)
    out, _ = case("annotators m.quorate --json")
    assert {json.loads(line)["name"] for line in out.splitlines()} == set(ANNOTATORS)
    case("report --model m.quorate", *case.inputs, "-o", "r.html", "-q")
    out, _ = case("next --model m.quorate", *case.inputs, "--as", "jsonl", "-n", "3")
    assert len(out.splitlines()) <= 3
    case.reads("aggregate", "--method", "bsc-cm", "-o", "d.jsonl", "--history", "m.quorate", "-q")
    assert read_consensus(Path("d.jsonl")) == truth(case.kind)


def test_report(case: Case) -> None:
    case.reads("report", "--method", "bsc-cm", "-o", "r.html", "--known", "inline")
    page = Path("r.html").read_text()
    assert "https:" not in page.replace("https://www.w3.org", "")
    assert ('role="tablist"' in page) == is_layered(case)


def test_next_without_a_model(case: Case) -> None:
    text = {"id": "bare", "text": "Ripon Spa won the spring cup at last"}
    Path("bare.jsonl").write_text(json.dumps(text))
    out, _ = case.run("next", *case.inputs, "bare.jsonl", *case.kind.options, "--as", "jsonl", "-n", "5")[1:]
    assert "bare" in {json.loads(line)["document"] for line in out.splitlines()}


def test_evaluate_and_compare(case: Case) -> None:
    case.reads("aggregate", "--method", "mv", "-o", "c.jsonl", "-q", "--probabilities")
    gold = case.inputs[-1]
    out, _ = case("evaluate c.jsonl --gold", gold, "--json", "--cee")
    found = json.loads(out)
    assert found["strict"]["f1"] == 1
    assert {name: one["support"] for name, one in found["by_type"].items()} == {
        label: len(TOWNS) * sum(name.rstrip("2") == label for name in case.kind.spans) for label in found["by_type"]
    }
    case("evaluate c.jsonl --gold", gold, "--errors")
    out, err = case.reads("compare", "--methods", "mv,bsc-cm", "--json")
    assert [row["scores"]["strict"]["f1"] for row in json.loads(out)["rows"]] == [1, 1]
    assert "left out" not in err


def test_convert_loses_nothing(case: Case) -> None:
    said = {
        who: {str(n + 1): {(m["label"], m["text"]) for m in said_of(n, case.kind)[who]} for n in range(len(TOWNS))}
        for who in ANNOTATORS
    }
    case.reads("convert", "out.jsonl")
    assert read_annotations(Path("out.jsonl")) == said
    case("convert out.jsonl", *case.kind.options, "out.json", "-q")
    tasks = read_tasks(Path("out.json"), "annotations")
    assert tasks.pop("gold") == truth(case.kind)
    assert tasks == said
    case("convert out.json", *case.kind.options, "out-brat", "--to", "brat", "-q")
    assert {who: read_brat(Path("out-brat", who)) for who in ANNOTATORS} == said
    case("convert out-brat", *case.kind.options, "again.jsonl", "-q")
    assert read_annotations(Path("again.jsonl")) == said


def test_a_consensus_is_converted_and_audited(case: Case) -> None:
    case.reads("aggregate", "--method", "bsc-cm", "-o", "c.jsonl", "-q")
    case("convert c.jsonl c.json -q")
    assert read_tasks(Path("c.json"), "predictions")["quorate"] == truth(case.kind)
    case("convert c.jsonl again.jsonl -q")
    assert read_consensus(Path("again.jsonl")) == truth(case.kind)
    case("audit plan c.jsonl -n 10 -o plan.jsonl")
    lines = [json.loads(line) for line in Path("plan.jsonl").read_text().splitlines()]
    kept = {line["id"]: {(s["label"], cut(line["text"], s)) for s in line["gold"]} for line in lines}
    assert all(truth(case.kind)[name] == words for name, words in kept.items())
    Path("done.jsonl").write_text("\n".join(json.dumps(line | {"checked": True}) for line in lines))
    out, _ = case("audit result c.jsonl --checked done.jsonl --json --recalibrated better.jsonl")
    assert json.loads(out)["f1"]["value"] == pytest.approx(1, abs=1e-3)
    assert read_consensus(Path("better.jsonl")) == truth(case.kind)
    case.reads(
        *("aggregate", "--method", "bsc-cm", "-o", "sure.jsonl", "--accept", "0.6", "--review", "rest.jsonl"),
        *("--checked", "done.jsonl", "-q"),
    )


def test_a_project_is_run_reviewed_compared_and_brought_back(case: Case) -> None:
    layers = 'layers = "auto"\n' if is_layered(case) else ""
    inputs = json.dumps([str(path) for path in case.inputs])
    Path("quorate.toml").write_text(
        f'inputs = {inputs}\nknown = ["reviews/*.jsonl"]\n[aggregate]\nmethod = "bsc-cm"\n{layers}'
    )
    case("run -q")
    assert read_consensus(Path("consensus.jsonl")) == truth(case.kind)
    Path("reviews").mkdir()
    right = marks_of(4, case.kind)[1:]
    for reviewer in ("ann", "bob"):
        line = {"id": "5", "text": text_of(4), "gold": right, "reviewer": reviewer}
        Path("reviews", f"{reviewer}.jsonl").write_text(json.dumps(line))
    out, _ = case("reviews --json")
    assert not json.loads(out)["disputes"]
    case("run -q")
    found = read_consensus(Path("consensus.jsonl"))
    assert found["5"] == {(mark["label"], mark["text"]) for mark in right}
    out, _ = case("diff --json")
    assert [one["id"] for one in json.loads(out)["documents"] if one["kind"] == "changed"] == ["5"]
    case("restore 1 -q")
    assert read_consensus(Path("consensus.jsonl")) == truth(case.kind)


def test_an_update_goes_on_with_documents_and_known_labels(case: Case) -> None:
    case.reads("aggregate", "--method", "bsc-cm", "-o", "c.jsonl", "--save", "m.quorate", "-q")
    out, _ = case("update m.quorate", *case.inputs, "-o", "u.jsonl", "--json")
    found = json.loads(out)
    for one in found["layers"].values() if is_layered(case) else [found]:
        assert (one["new"], one["changed"], one["unchanged"]) == (0, 0, len(TOWNS))
    assert read_consensus(Path("u.jsonl")) == truth(case.kind)
    right = marks_of(4, case.kind)[1:]
    Path("known.jsonl").write_text(json.dumps({"id": "5", "text": text_of(4), "gold": right}))
    _, err = case("update m.quorate --known known.jsonl --only-new -o u.jsonl")
    assert "0 new documents, 1 changed, 0 unchanged" in err
    assert read_consensus(Path("u.jsonl")) == {"5": {(mark["label"], mark["text"]) for mark in right}}
    case("predict m.quorate", *case.inputs, "-o", "p.jsonl", "-q")
    strange = [*right, {"start": 0, "end": len(text_of(4)), "label": "SENTENCE", "text": text_of(4)}]
    Path("strange.jsonl").write_text(json.dumps({"id": "5", "text": text_of(4), "gold": strange}))
    before = Path("m.quorate").read_bytes()
    case("update m.quorate --known strange.jsonl -o u.jsonl", code=2)
    assert Path("m.quorate").read_bytes() == before


@pytest.mark.parametrize("command", ["tune", "encode", "simulate-active"])
def test_a_command_that_knows_no_layers_says_so_in_a_line(run: Run, tmp_path: Path, command: str) -> None:
    write_jsonl(tmp_path, KINDS["layered"])
    output = ("-o", "out.qr") if command == "encode" else ()
    code, out, err = run(command, "crowd.jsonl", "--layers", "auto", *output)
    assert (code, out) == (2, "")
    known = "knows no layers (leave out --layers: of spans that overlap the longer is kept)"
    assert err == f"quorate: 'quorate {command}' {known}\n"
    assert "--layers" not in run(command, "--help")[1]


def test_a_report_of_an_audit_in_layers_is_refused_before_the_fit(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jsonl(tmp_path, KINDS["layered"])
    fit = ("crowd.jsonl", "--layers", "auto", "--method", "bsc-cm")
    assert run("aggregate", *fit, "-o", "c.jsonl", "--save", "m.quorate", "-q")[0] == 0
    assert run("audit", "plan", "c.jsonl", "-n", 10, "-o", "plan.jsonl", "-q")[0] == 0
    monkeypatch.setattr("quorate.estimators.layered.LayeredModel.fit", lambda *_, **__: pytest.fail("it was fitted"))
    said = "quorate: --audit is for a report without layers (quorate audit result has the scores of one in layers)\n"
    for more in (fit, ("crowd.jsonl", "--model", "m.quorate")):
        assert run("report", *more, "--audit", "plan.jsonl", "-o", "r.html") == (2, "", said)
