"""Builds the compiled kernels: every file of `native/`, once for each level of processor.

As a hook of the build, it puts them into the wheel. `python hatch_build.py` builds them in a checkout. A C compiler of
the machine is used (`CC`, or cc, gcc, clang); where there is none, and on Windows, that of the package `ziglang`.

`QUORATE_WHEEL=win_amd64 uv build --wheel` makes a wheel for another platform on any machine, with `ziglang`; `python
hatch_build.py --check` only compiles for all of these platforms, and fails on a warning; `--platforms` lists them.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "native"
KERNELS = Path("quorate", "model", "kernels")
# Rounding must not depend on what a compiler happens to fuse.
FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"]
FLAGS += ["-Wall", "-Wextra", "-Wno-psabi"]  # vectors are never passed between files
LEVELS: dict[str, list[str]] = {"base": [], "avx2": ["-mavx2", "-mfma", "-mbmi", "-mbmi2"]}
# The platforms that wheels are published for, and what zig calls them. macOS 11 is the first for both processors.
WHEELS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
    "win_arm64": "aarch64-windows-gnu",
}
WANTED = "QUORATE_WHEEL"


class Target(NamedTuple):
    """What is built for: a wheel's platform, and the command that compiles for it."""

    tag: str
    compiler: list[str]

    @property
    def levels(self) -> dict[str, list[str]]:
        """The levels of processor that there are, and their flags."""
        return LEVELS if self.tag.endswith(("x86_64", "amd64")) else {"base": LEVELS["base"]}

    @property
    def suffix(self) -> str:
        """How a library's file ends there."""
        return {"win": ".dll", "mac": ".dylib"}.get(self.tag[:3], ".so")


def target() -> Target:
    """The platform that is asked for, or this one."""
    wanted = os.environ.get(WANTED)
    if wanted:
        if wanted not in WHEELS:
            raise SystemExit(f"{WANTED}={wanted}: no such platform (give one of {', '.join(WHEELS)})")
        return Target(wanted, zig(WHEELS[wanted]))
    tag, own = tag_here(), own_compiler()
    if own is None:
        return Target(tag, zig(WHEELS.get(tag)))
    # Or it would be for this version of macOS and later.
    return Target(tag, [*own, "-mmacosx-version-min=11.0"] if sys.platform == "darwin" else own)


def tag_here() -> str:
    """This platform, as wheels name it. A Python for both processors of a Mac gets a library for the one that runs."""
    if sys.platform == "darwin":
        return f"macosx_11_0_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def own_compiler() -> list[str] | None:
    """The machine's C compiler, if it has one that knows vectors as GCC and Clang do."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"], posix=sys.platform != "win32")
    if sys.platform == "win32":
        return None
    return next(([path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name)) and _works(path)), None)


def _works(compiler: str) -> bool:
    """Whether it compiles: macOS has a cc that only says what to install, others one without the system's headers."""
    least = "#include <math.h>\n#include <stdlib.h>\n"
    command = [compiler, "-fsyntax-only", "-x", "c", "-"]
    return subprocess.run(command, input=least, text=True, capture_output=True, check=False).returncode == 0


def zig(triple: str | None) -> list[str]:
    """The compiler of the package ``ziglang``, for a platform or for this one."""
    if importlib.util.find_spec("ziglang") is None:
        raise SystemExit("no C compiler here (install gcc or clang, or: pip install ziglang)")
    return [sys.executable, "-m", "ziglang", "cc", *(["-target", triple] if triple else []), "-mcpu=baseline"]


def build(into: Path, target: Target, *extra: str) -> list[Path]:
    """Compile and link; returns the libraries."""
    sources = sorted(SOURCES.glob("*.c"))
    made = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        # zig keeps what it compiles of the system's library: not at home, where there may be none to write to.
        environment = {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, **os.environ}

        def run(*arguments: str) -> None:
            command = [*target.compiler, *arguments]
            try:
                subprocess.run(command, env=environment, check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise SystemExit(f"the kernels cannot be compiled: {error}") from None

        def compiled(level: str, source: Path) -> str:
            out = str(Path(folder) / f"{source.stem}-{level}.o")
            run(*FLAGS, *extra, *target.levels[level], "-c", str(source), "-o", out)
            return out

        jobs = {level: [pool.submit(compiled, level, source) for source in sources] for level in target.levels}
        for level, objects in jobs.items():
            library = into / f"kernels-{level}{target.suffix}"
            # Linked elsewhere and moved over it: a process that has the old one open goes on with that.
            linked = Path(folder) / library.name
            strip = ["-s"] if target.suffix == ".so" else []  # zig puts in what debuggers want of the system's library
            run("-shared", *strip, *[job.result() for job in objects], "-o", str(linked), "-lm")
            beside = library.with_name(f".{library.name}.{os.getpid()}")
            shutil.copy2(linked, beside)
            os.replace(beside, library)
            made.append(library)
    return made


def build_here() -> list[Path]:
    """Build in a checkout, for what runs from there."""
    return build(ROOT / "src" / KERNELS, target())


def check() -> None:
    """Compile for every platform that wheels are published for; a warning is an error."""
    for tag, triple in WHEELS.items():
        with tempfile.TemporaryDirectory() as folder:
            made = build(Path(folder), Target(tag, zig(triple)), "-Werror")
            print(f"{tag}: {', '.join(f'{each.name} {each.stat().st_size:,}' for each in made)}", flush=True)


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # run as a program, where hatchling need not be there
    pass
else:

    class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
        """Builds the kernels before a wheel, or an editable install, is made."""

        PLUGIN_NAME = "custom"

        def dependencies(self) -> list[str]:
            """What the build needs besides hatchling."""
            if self.target_name != "wheel":
                return []
            return [] if not os.environ.get(WANTED) and own_compiler() else ["ziglang>=0.13"]

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Build, and say that the wheel is for one platform, and for every Python."""
            if self.target_name != "wheel":
                return
            if version == "editable":
                build_here()
                return
            # Aside, so that a wheel for elsewhere leaves the libraries of the checkout as they are.
            self._built = tempfile.TemporaryDirectory()
            platform = target()
            for library in build(Path(self._built.name), platform):
                build_data["force_include"][str(library)] = (KERNELS / library.name).as_posix()
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform.tag}"

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Leave nothing behind."""
            if hasattr(self, "_built"):
                self._built.cleanup()

    class ReadmeHook(MetadataHookInterface):
        """Takes the README of the repository; in the distribution of the sources it is beside this file."""

        PLUGIN_NAME = "custom"

        def update(self, metadata: dict[str, Any]) -> None:
            """The description of the project."""
            places = [ROOT / "README.md", ROOT.parents[1] / "README.md"]
            text = next(place for place in places if place.exists()).read_text(encoding="utf-8")
            metadata["readme"] = {"content-type": "text/markdown", "text": text}


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check()
    elif sys.argv[1:] == ["--platforms"]:
        print(*WHEELS)
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        for library in build_here():
            print(library.relative_to(ROOT))
