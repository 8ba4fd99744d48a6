"""Mutation testing of the deciding code: ``make mutate``, ``python -m tools.mutate [FILE_OR_FOLDER ...]``.

A seeded sample of the mutants of ``sidecar/throttle`` and ``sidecar/quotas`` runs, each in a process
of its own, against the tests of its module: those of its file, then of its folder, then of its
package, until one fails. A mutant that no test kills has survived: either a test is missing, or the
code is superfluous, or the mutant does the same as the code. The last kind is listed with its
reason in ``tests/mutants.toml``; any other survivor fails the run, and so does a listed one that
is killed or is no mutant any more.

The same seed draws the same mutants, whatever else changes in the code: a mutant's place in the
sample goes by a hash of its seed and text. Property tests draw the same examples each time. A
mutant has three times the CPU time of the green tests, and 10 s.

Example: ``make mutate SEED=7 SAMPLE=200``.
"""

import argparse
import hashlib
import os
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Final, NoReturn

import pytest
from hypothesis import Phase, settings, stateful, strategies  # noqa: F401  # once, not in each process

from tools.mutants import Mutant, mutants_below

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("sidecar/throttle", "sidecar/quotas")
LISTED: Final = ROOT / "tests" / "mutants.toml"
SAMPLE: Final = 400

_MEMORY_BYTES: Final = 2 << 30
_TOOL_ERRORS: Final = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


class _Mutated(SourceFileLoader, MetaPathFinder):
    """Loads the mutant in place of its module, and leaves the file as it is."""

    def __init__(self, mutant: Mutant) -> None:
        module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        super().__init__(module, str(ROOT / mutant.file))
        self._code = mutant.code

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._code, self.path, "exec")


class _FirstFailure:
    """Property tests end with the first example that fails, and keep none for the next mutant."""

    def pytest_configure(self) -> None:
        once = settings(phases=(Phase.explicit, Phase.generate), database=None)
        settings.register_profile("first failure", once)
        settings.load_profile("first failure")


def _tests(file: str) -> list[str]:
    """The tests of a module, those first that are likely to kill."""
    _, package, *rest = Path(file).parts
    folder = Path("tests", package, *rest[:-1])
    own = folder / f"test_{rest[-1]}"
    paths = [own, folder, Path("tests", package)]
    return list(dict.fromkeys(str(path) for path in paths if (ROOT / path).exists()))


def _test(mutant: Mutant | None, tests: Sequence[str], cpu_s: int) -> NoReturn:
    """Runs tests in this process, which ends with pytest's exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if mutant is not None:
        sys.meta_path.insert(0, _Mutated(mutant))
    unneeded = [f"-pno:{plugin}" for plugin in ("schemathesis", "xdist", "cov", "cacheprovider")]
    code = pytest.ExitCode.INTERNAL_ERROR
    try:
        arguments = ["-x", "--assert=plain", "--hypothesis-seed=0", "-otimeout=60", *unneeded, *tests]
        code = pytest.ExitCode(pytest.main(arguments, plugins=[_FirstFailure()]))
    finally:
        os._exit(code)


def _start(mutant: Mutant | None, tests: Sequence[str], cpu_s: int) -> int:
    pid = os.fork()
    if pid == 0:
        _test(mutant, tests, cpu_s)
    return pid


def _green_s(package: str) -> int:
    """The CPU seconds that a package's tests take without a mutant, rounded up.

    Raises:
        SystemExit: They fail.
    """
    _, status, usage = os.wait4(_start(None, [package.replace("sidecar", "tests", 1)], 300), 0)
    if status:
        sys.exit(f"The tests of {package} fail without a mutant.")
    return int(usage.ru_utime + usage.ru_stime) + 1


def _fate(status: int) -> Fate:
    code = os.waitstatus_to_exitcode(status)
    if code in _TOOL_ERRORS:
        sys.exit(f"pytest found no tests to run ({code}).")
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return Fate.TIMED_OUT
    return Fate.SURVIVED if code == 0 else Fate.KILLED


def _run(mutants: Sequence[Mutant], end_s: float) -> Iterator[tuple[Mutant, Fate]]:
    """Runs one mutant on each core, and starts none after the end (of the steady clock)."""
    packages = {"/".join(Path(mutant.file).parts[:2]) for mutant in mutants}
    limits_s = {package: 10 + 3 * _green_s(package) for package in sorted(packages)}
    running: dict[int, Mutant] = {}
    waiting = iter(mutants)
    try:
        while True:
            while len(running) < (os.cpu_count() or 1) and time.monotonic() < end_s:
                mutant = next(waiting, None)
                if mutant is None:
                    break
                cpu_s = limits_s["/".join(Path(mutant.file).parts[:2])]
                running[_start(mutant, _tests(mutant.file), cpu_s)] = mutant
            if not running:
                return
            pid, status = os.wait()
            yield running.pop(pid), _fate(status)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)


def sample(mutants: Sequence[Mutant], seed: int, size: int) -> list[Mutant]:
    """Those of the mutants that a seed draws, in the order in which it draws them."""

    def place(mutant: Mutant) -> bytes:
        text = "\0".join((str(seed), mutant.file, mutant.was, mutant.now))
        return hashlib.sha256(text.encode()).digest()

    drawn: list[Mutant] = []
    for mutant in sorted(mutants, key=place):
        if len(drawn) == size:
            break
        try:
            compile(mutant.code, mutant.file, "exec")
        except SyntaxError:
            continue
        drawn.append(mutant)
    return drawn


def listed() -> dict[tuple[str, str, str], str]:
    """The reasons of the known survivors, by file and by the lines as they are and with the mistake."""
    rows = tomllib.loads(LISTED.read_text(encoding="utf-8"))["survivor"]
    return {(row["file"], row["was"], row["now"]): row["reason"] for row in rows}


def main() -> None:
    """Draws, runs and reports; ends with 1 where a survivor is new or the list is not right."""
    parser = argparse.ArgumentParser(description="Mutation testing of throttle/ and quotas/.")
    parser.add_argument("paths", nargs="*", help="files or folders; else both packages")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="how many mutants at most")
    parser.add_argument("--minutes", type=float, default=30, help="when no other is started")
    given = parser.parse_args()

    begun_s = time.monotonic()
    every = list(mutants_below(ROOT, given.paths or PACKAGES))
    drawn = sample(every, given.seed, given.sample)
    reasons = listed()
    fates: Counter[Fate] = Counter()
    wrong = 0
    for mutant, fate in _run(drawn, begun_s + 60 * given.minutes):
        fates[fate] += 1
        reason = reasons.get((mutant.file, mutant.was, mutant.now))
        if fate is Fate.SURVIVED:
            print(f"{mutant}\n  {reason or 'NEW: no test kills it'}", flush=True)
        elif reason:
            print(f"{mutant}\n  LISTED as a survivor, but {fate}", flush=True)
        wrong += (fate is Fate.SURVIVED) != (reason is not None)
    if not given.paths:
        known = {(mutant.file, mutant.was, mutant.now) for mutant in every}
        for file, was, now in reasons.keys() - known:
            print(f"{file}\n  was: {was}\n  now: {now}\n  LISTED, but no mutant any more")
            wrong += 1
    figures = ", ".join(f"{fates[fate]} {fate}" for fate in Fate)
    print(
        f"{len(every)} mutants, {len(drawn)} drawn with seed {given.seed}, {fates.total()} run: {figures}, "
        f"of which {wrong} are not as listed; {time.monotonic() - begun_s:.0f} s"
    )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
