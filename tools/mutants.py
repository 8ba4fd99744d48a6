"""The mutants of source files: copies with one small mistake each, made by mutmut's operators.

mutmut's own runner mutates no property, no constant and no default of a field, draws no seeded
sample, and copies the project for each run; so only its operators are used. What no test looks
at stays as it is: annotations and names of types (``Line = Literal["limit"]``), decorators,
docstrings, ``__repr__``, lists of names.

Example: ``if now_s <= end_s:`` gives one mutant, with ``<``; ``kept(until, now)`` gives four, with
``None`` in place of either argument and without it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import libcst as cst
import libcst.matchers as m
from libcst.metadata import CodeRange, MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation.mutators import mutation_operators

_TYPE = m.Name(m.MatchRegex(r"_?[A-Z]\w*[a-z]\w*"))
_NOT_TESTED = (
    m.Assign(targets=[m.AssignTarget(m.Name("__all__") | m.Name("__slots__") | _TYPE)])
    | m.Assign(value=m.Call(m.Name("TypeVar")))
    | m.FunctionDef(name=m.Name("__repr__"))
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake in one file.

    Attributes:
        file: The file's path from the project's root.
        was: The changed lines as they are, joined, by which it is known when they move.
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


def mutants_below(root: Path, paths: Iterable[str]) -> Iterator[Mutant]:
    """All mutants of files, and of the Python files in folders; the paths start from the root."""
    for path in paths:
        for file in sorted((root / path).rglob("*.py")) or [root / path]:
            source = file.read_text(encoding="utf-8")
            visitor = _Visitor()
            MetadataWrapper(cst.parse_module(source)).visit(visitor)
            for position, replacement in visitor.replacements:
                yield _mutant(str(file.relative_to(root)), source, position, replacement)


def sample(mutants: Iterable[Mutant], seed: int, size: int) -> list[Mutant]:
    """Those of the mutants that a seed draws, at most so many.

    A mutant's place goes by a hash of seed and text: a change of other code draws the same ones.
    """

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


class _Visitor(cst.CSTVisitor):
    """Collects what may stand in place of each node."""

    METADATA_DEPENDENCIES = (WhitespaceInclusivePositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.replacements: list[tuple[CodeRange, str]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Decorator) or m.matches(node, _NOT_TESTED):
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
    same_after = _alike(was[::-1], now[::-1])
    return Mutant(
        file,
        " ".join("".join(was[: len(was) - same_after]).split()),
        " ".join("".join(now[: len(now) - same_after]).split()),
        first + same + 1,
        code,
    )


def _alike(was: list[str], now: list[str]) -> int:
    """How many lines at the start are the same; a replacement's further lines aren't indented."""
    pairs = zip(was, now, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].strip() == pair[1].strip(), pairs))
