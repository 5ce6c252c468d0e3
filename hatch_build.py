"""Builds the compiled kernels: every file of `native/`, once for each level of processor.

As a hook of the build, it puts them into the package. `python hatch_build.py` does the same in a checkout. A C compiler
of the machine is used (`CC`, or cc, gcc, clang); where there is none, and on Windows, that of the package `ziglang`.
"""

from __future__ import annotations

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
from typing import Any

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "native"
INTO = ROOT / "src" / "quorate" / "infer" / "kernels"
# Rounding must not depend on what a compiler happens to fuse: results are the same wherever a level runs.
FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"]
FLAGS += ["-Wall", "-Wextra", "-Wno-psabi"]  # vectors are never passed between files
LEVELS: dict[str, list[str]] = {"base": [], "avx2": ["-mavx2", "-mfma", "-mbmi", "-mbmi2"]}


def own_compiler() -> list[str] | None:
    """The machine's C compiler, if it has one that knows vectors as GCC and Clang do."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    if sys.platform == "win32":
        return None
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return None if found is None else [found]


def suffix() -> str:
    """How a library's file ends here."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def build(into: Path = INTO) -> list[Path]:
    """Compile and link; returns the libraries."""
    compiler = own_compiler() or [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]
    levels = LEVELS if platform.machine().lower() in ("x86_64", "amd64") else {"base": LEVELS["base"]}
    sources = sorted(SOURCES.glob("*.c"))
    made = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:

        def compiled(level: str, source: Path) -> str:
            out = str(Path(folder) / f"{source.stem}-{level}.o")
            subprocess.run([*compiler, *FLAGS, *levels[level], "-c", str(source), "-o", out], check=True)
            return out

        jobs = {level: [pool.submit(compiled, level, source) for source in sources] for level in levels}
        for level, objects in jobs.items():
            library = into / f"kernels-{level}{suffix()}"
            # Linked beside it and moved over it: a process that has the old one open goes on with that.
            linked = Path(folder) / library.name
            files = [job.result() for job in objects]
            subprocess.run([*compiler, "-shared", *files, "-o", str(linked), "-lm"], check=True)
            beside = library.with_name(f".{library.name}.{os.getpid()}")
            shutil.copy2(linked, beside)
            os.replace(beside, library)
            made.append(library)
    return made


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program, where hatchling need not be there
    pass
else:

    class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
        """Builds the kernels before a wheel, or an editable install, is made."""

        PLUGIN_NAME = "custom"

        def dependencies(self) -> list[str]:
            """What the build needs besides hatchling."""
            return [] if self.target_name != "wheel" or own_compiler() else ["ziglang"]

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Build, and say that the wheel is for this platform, and for every Python."""
            if self.target_name != "wheel":
                return
            for library in build():
                build_data["artifacts"].append(str(library.relative_to(ROOT)))
            build_data["pure_python"] = False
            build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


if __name__ == "__main__":
    for library in build():
        print(library.relative_to(ROOT))
