"""Mutation testing of the deciding code: ``make mutate``, ``python -m tools.mutate [PATH ...]``.

A seeded sample of the mutants of ``sidecar/throttle`` and ``sidecar/quotas`` runs, each in a
process of its own, against the tests of its module's file, then of its package, until one fails.
Where none fails, the mutant has survived: a test is missing, or the code is superfluous, or no
test can see the mistake. Survivors of the last kind stand with their reason in
``tests/mutants.toml``. Any other fails the run, and so does one of that list that is killed or is
no mutant any more.

The same seed gives the same result, on a busy machine too: property tests draw the same examples,
and only CPU time counts. A mutant has three times that of its package's tests, and 10 s.

Example: ``make mutate SEED=7 SAMPLE=200``.
"""

import argparse
import os
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import CodeType
from typing import Final, NoReturn

import pytest
from hypothesis import Phase, settings, stateful  # noqa: F401 - imported once for all processes

from tools.mutants import Mutant, mutants_below, sample

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("throttle", "quotas")

_MEMORY_BYTES: Final = 2 << 30
_OPTIONS: Final = (
    "-x",
    "--assert=plain",
    "--hypothesis-seed=0",
    *(f"-pno:{plugin}" for plugin in ("schemathesis", "xdist", "cov", "cacheprovider")),
    # Its search takes two minutes for each mutant that survives all else.
    "--ignore=tests/sidecar/throttle/test_small_scope.py",
)


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


class _Mutated(SourceFileLoader):
    """Loads the mutant in place of its module; the file stays as it is."""

    def __init__(self, mutant: Mutant) -> None:
        module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        super().__init__(module, str(ROOT / mutant.file))
        self._code = mutant.code

    def find_spec(self, fullname: str, *_: object, **__: object) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        return spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - its own module only
        return compile(self._code, self.path, "exec")


class _ForMutants:
    """Sets up pytest for a run on a mutant."""

    def pytest_configure(self) -> None:
        """Property tests end with the first example that fails, and keep none for the next."""
        once = settings(phases=(Phase.explicit, Phase.generate), database=None)
        settings.register_profile("first failure", once)
        settings.load_profile("first failure")

    def pytest_timeout_set_timer(self) -> bool:
        """Sets no timer: tests that wait for a core would fail, and mutants would seem killed."""
        return True


def _package(mutant: Mutant) -> str:
    return Path(mutant.file).parts[1]


def _tests(mutant: Mutant) -> list[list[str]]:
    """What pytest is called with, one call after the other."""
    *folders, name = Path(mutant.file).parts
    own = Path("tests", *folders, f"test_{name}")
    package = f"tests/sidecar/{_package(mutant)}"
    return [[str(own)], [package, f"--ignore={own}"]] if (ROOT / own).exists() else [[package]]


def _start(
    mutant: Mutant | None, tests: Sequence[Sequence[str]], cpu_s: int, output: str = os.devnull
) -> int:
    """The id of a new process that runs the tests and ends with pytest's exit code."""
    return os.fork() or _test(mutant, tests, cpu_s, output)


def _test(
    mutant: Mutant | None, tests: Sequence[Sequence[str]], cpu_s: int, output: str
) -> NoReturn:
    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        for stream, path in enumerate((os.devnull, output, output)):
            os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), stream)
        if mutant is not None:
            sys.meta_path.insert(0, _Mutated(mutant))
        for arguments in tests:
            code = pytest.main([*_OPTIONS, *arguments], plugins=[_ForMutants()])
            if code:
                break
    finally:
        sys.stdout.flush()
        os._exit(code)


def _limit_s(package: str) -> int:
    """The CPU seconds that a mutant of the package has.

    Raises:
        SystemExit: The package's tests fail without a mutant, or need more than 15 minutes of CPU
            time; with their output.
    """
    with NamedTemporaryFile("r", encoding="utf-8") as output:
        pid = _start(None, [[f"tests/sidecar/{package}"]], 900, output.name)
        _, status, usage = os.wait4(pid, 0)
        if status:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(
                f"{output.read()}\n"
                f"The tests of {package} fail without a mutant, with exit code {code}."
            )
    return 10 + round(3 * (usage.ru_utime + usage.ru_stime))


def _fate(status: int) -> Fate:
    code = os.waitstatus_to_exitcode(status)
    if code in {pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED}:
        sys.exit(f"pytest could not run the tests: exit code {code}.")
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return Fate.TIMED_OUT
    return Fate.KILLED if code else Fate.SURVIVED


def run(mutants: Sequence[Mutant], end_s: float) -> Iterator[tuple[Mutant, Fate]]:
    """Runs mutants, one on each core; starts none after the end, a time of the steady clock."""
    limits_s = {package: _limit_s(package) for package in {_package(each) for each in mutants}}
    running: dict[int, Mutant] = {}
    waiting = list(reversed(mutants))
    try:
        while running or waiting:
            while waiting and len(running) < (os.cpu_count() or 1) and time.monotonic() < end_s:
                mutant = waiting.pop()
                running[_start(mutant, _tests(mutant), limits_s[_package(mutant)])] = mutant
            if not running:
                return
            pid, status = os.wait()
            yield running.pop(pid), _fate(status)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Ends with 1 where a survivor is not listed, or the list is not right."""
    parser = argparse.ArgumentParser(description="Mutation testing of the deciding code.")
    parser.add_argument("paths", nargs="*", help="files or folders; both packages by default")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--sample", type=int, default=400, help="how many mutants are drawn")
    parser.add_argument("--minutes", type=float, default=30, help="after which none is started")
    options = parser.parse_args()

    begun_s = time.monotonic()
    paths = options.paths or [f"sidecar/{package}" for package in PACKAGES]
    mutants = list(mutants_below(ROOT, paths))
    drawn = sample(mutants, options.seed, options.sample)
    rows = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["survivor"]
    reasons = {(row["file"], row["was"], row["now"]): row["reason"] for row in rows}
    fates: Counter[str] = Counter()
    wrong = 0
    for mutant, fate in run(drawn, begun_s + 60 * options.minutes):
        reason = reasons.get((mutant.file, mutant.was, mutant.now))
        fates[fate] += 1
        if fate is Fate.SURVIVED or reason:
            print(f"{mutant}\n  {fate}: {reason or 'NEW'}", flush=True)
        wrong += (fate is Fate.SURVIVED) != (reason is not None)
    for file, was, now in reasons.keys() - {(each.file, each.was, each.now) for each in mutants}:
        if any(Path(file).is_relative_to(path) for path in paths):
            print(f"{file}\n  was: {was}\n  now: {now}\n  listed, but no mutant any more")
            wrong += 1
    print(
        f"{len(mutants)} mutants; {fates.total()} of {len(drawn)} drawn with seed {options.seed} "
        f"ran in {time.monotonic() - begun_s:.0f} s: "
        + ", ".join(f"{fates[fate]} {fate}" for fate in Fate)
        + f"; {wrong} not as listed"
    )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
