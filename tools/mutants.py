"""The mutants of a source file: copies of it, each with one small mistake, made by mutmut's operators.

mutmut's own runner mutates no property, no constant and no default of a field, draws no seeded
sample, and copies the project for each run; so only its operators are used. Annotations,
decorators and docstrings stay as they are.

Example: ``if now_s <= end_s:`` gives one mutant with ``<``, and one each with ``None`` for a call's argument.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation.mutators import mutation_operators


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake in one file.

    Attributes:
        file: The file's path from the project's root.
        was: The changed lines as they are, in one, so that the mutant is known when they move.
        now: The same lines with the mistake.
        line: Where they begin, from 1.
        code: The whole file with the mistake.
    """

    file: str
    was: str
    now: str
    line: int = field(compare=False)
    code: str = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n  was: {self.was}\n  now: {self.now}"


def mutants(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file, in the order of its lines."""
    source = (root / file).read_text(encoding="utf-8")
    visitor = _Visitor()
    MetadataWrapper(cst.parse_module(source)).visit(visitor)
    found = [_mutant(file, source, position, code) for position, code in visitor.replacements]
    return sorted(found, key=lambda mutant: mutant.line)


class _Visitor(cst.CSTVisitor):
    """Collects what may stand in place of a node."""

    METADATA_DEPENDENCIES = (WhitespaceInclusivePositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.replacements: list[tuple[CodeRange, str]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom):
            return False
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                position = self.get_metadata(WhitespaceInclusivePositionProvider, node)
                for mutated in operator(node):
                    self.replacements.append((position, cst.Module([]).code_for_node(mutated)))
        return True


def _mutant(file: str, source: str, position: CodeRange, replacement: str) -> Mutant:
    lines = source.splitlines(keepends=True)
    first, last = position.start.line - 1, position.end.line - 1
    before, after = lines[first][: position.start.column], lines[last][position.end.column :]
    was, now = lines[first : last + 1], f"{before}{replacement}{after}".splitlines(keepends=True)
    code = "".join([*lines[:first], *now, *lines[last + 1 :]])
    same = _alike(was, now)
    was, now = was[same:], now[same:]
    rest = _alike(was[::-1], now[::-1])
    return Mutant(
        file,
        " ".join("".join(was[: len(was) - rest]).split()),
        " ".join("".join(now[: len(now) - rest]).split()),
        first + same + 1,
        code,
    )


def _alike(was: list[str], now: list[str]) -> int:
    """How many lines at the start are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False)))


def mutants_below(root: Path, folders: list[str]) -> Iterator[Mutant]:
    """All mutants of the Python files in folders, or of single files, in the order of their paths."""
    for folder in folders:
        path = root / folder
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield from mutants(root, str(file.relative_to(root)))
