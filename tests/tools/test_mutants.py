"""The mutants of a file, and which of them a seed draws."""

from pathlib import Path

import pytest

from tools.mutants import Mutant, mutants_below, sample

pytestmark = pytest.mark.slow

SOURCE = '''"""A module."""

__all__ = ["Window", "late"]

_T = TypeVar("_T")
Side = Literal["left", "right"]

MOST: Final = 5


class Window:
    """A window."""

    def __repr__(self) -> str:
        return "Window"

    @property
    def most(self) -> int | None:
        return MOST * 2


def late(
    now: float,
    end: float,
) -> bool:
    return not_before(
        now,
        end,
    )
'''


@pytest.fixture
def mutants(tmp_path: Path) -> list[Mutant]:
    (tmp_path / "window.py").write_text(SOURCE)
    return list(mutants_below(tmp_path, ["."]))


def test_each_mutant_has_one_mistake(mutants: list[Mutant]) -> None:
    """Constants and properties have some; types, docstrings, reprs and ``__all__`` none."""
    assert [
        (8, "MOST: Final = 5", "MOST: Final = None"),
        (8, "MOST: Final = 5", "MOST: Final = 6"),
        (19, "return MOST * 2", "return MOST / 2"),
        (19, "return MOST * 2", "return MOST * 3"),
        (27, "now,", "None,"),
        (28, "end,", "None,"),
        (27, "now,", ""),
        (28, "end,", ""),
    ] == [(mutant.line, mutant.was, mutant.now) for mutant in mutants]
    assert SOURCE.replace("MOST * 2", "MOST / 2") == mutants[2].code


def test_a_seed_draws_the_same_after_a_change_elsewhere(
    mutants: list[Mutant], tmp_path: Path
) -> None:
    """A mutant's place goes by its text, not by where it stands."""
    (tmp_path / "window.py").write_text(
        SOURCE.replace("\n\n\nclass", "\nLEAST: Final = 1\n\n\nclass")
    )
    later = [mutant for mutant in mutants_below(tmp_path, ["."]) if "LEAST" not in mutant.was]
    assert sample(mutants, 1, 4) == sample(later, 1, 4)
    assert sample(mutants, 1, 4) != sample(mutants, 2, 4)
    assert len(mutants) == len(sample(mutants, 1, 100))


def test_what_is_no_python_is_not_drawn() -> None:
    """Some mutations make none: a call's only unpacked argument between others, for one."""
    broken = Mutant("a.py", "x = 1", "x = ", 1, "x = ")
    assert [] == sample([broken], 1, 1)
