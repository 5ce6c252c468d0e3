"""What a release promises: what it pulls in, for whom wheels are made, and an environment that can be had again."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import quorate

ROOT = Path(__file__).resolve().parents[4]
LIBRARY, SERVICE = (ROOT / "packages" / name for name in ("quorate", "quorate-serve"))
PROJECT, OF_SERVICE = (
    tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"] for package in (LIBRARY, SERVICE)
)
PULLED_IN = {"msgspec", "numpy", "rich", "scipy", "typer"}


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


@pytest.fixture(scope="module")
def building() -> ModuleType:
    """What builds the kernels."""
    spec = importlib.util.spec_from_file_location("hatch_build", LIBRARY / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_installation_pulls_in_no_more_than_before() -> None:
    assert {name_of(each) for each in PROJECT["dependencies"]} <= PULLED_IN


def test_the_lock_has_every_package_and_no_address() -> None:
    lines = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    assert all(re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.!+-]+( ; .+)?$", line) for line in lines)
    locked = {name_of(line).replace("_", "-") for line in lines}
    wanted = [*PROJECT["dependencies"], *OF_SERVICE["dependencies"]]
    for extra in ("docs", "dev"):
        wanted += PROJECT["optional-dependencies"][extra]
    assert {name_of(each) for each in wanted} - {"quorate"} <= locked


def test_both_packages_have_one_version_licence_and_pythons() -> None:
    assert OF_SERVICE["version"] == quorate.__version__
    assert f"quorate=={quorate.__version__}" in OF_SERVICE["dependencies"]
    for name in ("requires-python", "license", "license-files"):
        assert OF_SERVICE[name] == PROJECT[name]
    assert set(PROJECT["classifiers"]) - set(OF_SERVICE["classifiers"]) == {"Programming Language :: C"}
    texts = {(folder / "LICENSE").read_text(encoding="utf-8") for folder in (ROOT, LIBRARY, SERVICE)}
    assert len(texts) == 1


def test_every_python_that_is_tested_is_named() -> None:
    named = {each.rsplit(" ", 1)[1] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)}
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert named == set(re.findall(r'"(3\.\d+)"', workflow))


@pytest.mark.parametrize(
    ("tag", "suffix", "levels"),
    [
        ("manylinux_2_17_x86_64", ".so", ["base", "avx2"]),
        ("manylinux_2_17_aarch64", ".so", ["base"]),
        ("macosx_11_0_arm64", ".dylib", ["base"]),
        ("macosx_11_0_x86_64", ".dylib", ["base", "avx2"]),
        ("win_amd64", ".dll", ["base", "avx2"]),
        ("win_arm64", ".dll", ["base"]),
    ],
)
def test_a_platform_gets_its_libraries(building: ModuleType, tag: str, suffix: str, levels: list[str]) -> None:
    target = building.Target(tag, [])
    assert tag in building.WHEELS
    assert (target.suffix, list(target.levels)) == (suffix, levels)


def test_a_python_for_both_processors_of_a_mac_gets_a_wheel_for_one(
    building: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(building.sysconfig, "get_platform", lambda: "macosx-10.9-universal2")
    monkeypatch.setattr(building.platform, "machine", lambda: "arm64")
    assert building.tag_here() == "macosx_11_0_arm64"


def test_a_platform_that_there_is_not_is_one_line(building: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_WHEEL", "amiga")
    with pytest.raises(SystemExit, match=r"QUORATE_WHEEL=amiga: no such platform \(give one of manylinux"):
        building.target()


def test_no_compiler_at_all_is_one_line(building: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(building.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"no C compiler here \(install gcc or clang, or: pip install ziglang\)"):
        building.target()


def test_a_compiler_that_fails_is_one_line(building: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"the kernels cannot be compiled: .*no-such-compiler"):
        building.build(tmp_path, building.Target("linux_x86_64", ["no-such-compiler"]))
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_compiles_nothing_is_passed_over(
    building: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cc of macOS before its tools are installed."""
    for name in ("cc", "gcc", "clang"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert building.own_compiler() is None


def test_help_says_what_can_be_built() -> None:
    done = subprocess.run([sys.executable, LIBRARY / "hatch_build.py", "--help"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "--check" in done.stderr
