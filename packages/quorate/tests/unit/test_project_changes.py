"""What changed since a version is told by the names that stand in quorate.toml, and in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.project.changes import outputs_changed, what_changed
from quorate.project.store import Version


def version(**parts: Any) -> Version:
    plain: dict[str, Any] = {
        "number": 1,
        "time": "2026-11-10T09:00:00+00:00",
        "quorate": "1",
        "message": "",
        "changes": [],
        "fingerprint": "",
        "decided": {},
        "inputs": {},
        "known": {},
        "outputs": {},
        "consensus": "",
        "model": None,
        "annotators": "",
        "counts": {},
    }
    return Version(**plain | parts)


RULE = {"kind": "rule", "trust": 1.0, "abstains": False}
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing": ({"method": "auto", "accept": None}, {"method": "auto"}, []),
    "method": ({"method": "auto"}, {"method": "bsc-cm"}, ["method: auto → bsc-cm"]),
    "a setting": (
        {"settings": {"max_iter": 4, "temper": 0.6}},
        {"settings": {"max_iter": 5}},
        ["max-passes: 4 → 5", "temper: 0.6 → not given"],
    ),
    "a switch": ({"settings": {}}, {"settings": {"text": False}}, ["text: not given → no"]),
    "a flag": ({"without_documents": False}, {"without_documents": True}, ["without-documents: no → yes"]),
    "the format": (
        {"reading": {}},
        {"reading": {"format": "conll", "predictions": True}},
        ["from: not given → conll", "with-predictions: not given → yes"],
    ),
    "gold is known": ({"inline": False}, {"inline": True}, ["gold in the inputs: known now"]),
    "gold is not": ({"inline": True}, {"inline": False}, ["gold in the inputs: no longer known"]),
    "labels": (
        {"reading": {"map_labels": {"PERS": "PER", "MISC": None, "été": "T"}}},
        {"reading": {"map_labels": {"PERS": "PERSON", "WORK": None, "été": None}}},
        [
            "map-labels MISC: dropped → not given",
            "map-labels PERS: PER → PERSON",
            "map-labels WORK: not given → dropped",
            "map-labels été: T → dropped",
        ],
    ),
    "a map": ({"reading": {}}, {"reading": {"map_labels": {"A": "B"}}}, ["map-labels A: not given → B"]),
    "a label named as an option": (
        {"reading": {"map_labels": {"format": "A"}}},
        {"reading": {"map_labels": {"format": "B"}}},
        ["map-labels format: A → B"],
    ),
    "profiles": (
        {"reading": {"annotators": {"fay": RULE, "bob": RULE}}},
        {"reading": {"annotators": {"fay": RULE | {"abstains": True, "group": "x"}, "ann": RULE}}},
        [
            "annotators ann: new",
            "annotators bob: gone",
            "annotators fay abstains: no → yes",
            "annotators fay group: not given → x",
        ],
    ),
    "names are hidden": (
        {"reading": {"annotators": {"fay": RULE}, "map_annotators": "3f" * 32}},
        {"reading": {"annotators": "4a" * 32, "map_annotators": "5b" * 32, "pseudonymise": "who.json"}},
        ["annotators: changed", "map-annotators: changed", "pseudonymise: not given → who.json"],
    ),
    "history": ({"history": "3f" * 32}, {"history": "4a" * 32}, ["history: changed"]),
    "no history": ({}, {"history": "4a" * 32}, ["history: new"]),
    "an audit": (
        {"checked": {"one.jsonl": "3f", "two.jsonl": "3f"}},
        {"checked": {"two.jsonl": "4a", "three.jsonl": "3f"}},
        ["new checked file three.jsonl", "changed checked file two.jsonl", "removed checked file one.jsonl"],
    ),
}


@pytest.mark.parametrize("what", OPTIONS)
def test_options_are_told_by_their_names_in_the_file(what: str) -> None:
    old, new, told = OPTIONS[what]
    assert list(what_changed(version(decided=old), {}, {}, new)) == told


def test_files_are_told_by_name_and_in_which_order_they_count() -> None:
    before = version(inputs={"a.jsonl": "1", "b.jsonl": "2", "c.jsonl": "3"}, known={"rita.jsonl": "1"})
    inputs, known = {"d.jsonl": "4", "b.jsonl": "5", "a.jsonl": "1"}, {"rita.jsonl": "2"}
    assert list(what_changed(before, inputs, known, {})) == [
        "new input d.jsonl",
        "changed input b.jsonl",
        "removed input c.jsonl",
        "input files: in another order",
        "changed review rita.jsonl",
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a.jsonl": "1"}, ["a.jsonl"], []),
        ({"a.jsonl": "1"}, ["a.jsonl", "r.html"], ["outputs: r.html new"]),
        ({"a.jsonl": "1", "é.csv": "2"}, ["b.jsonl"], ["outputs: b.jsonl new, a.jsonl gone, é.csv gone"]),
    ],
)
def test_outputs_are_told_in_one_line(old: dict[str, str], new: list[str], told: list[str]) -> None:
    assert list(outputs_changed(version(outputs=old), new)) == told
