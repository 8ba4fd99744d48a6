"""Checks the English of pages, comments, docstrings and messages.

``make lint`` runs it. It prints a line for each finding, with the file, the line and a plain
alternative, and ends with exit code 1 if there is any. ``tools/prose.toml`` has the patterns and
the checks of proselint that are off.

The rules apply to text only: code becomes characters that match no pattern, in their lines.
Example: ``docs/x.md:7: "so many": name the number, or write "that number of"``.
"""

import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from proselint import checks as proselint_checks
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT: Final = Path(__file__).parents[1]
CONFIG: Final = ROOT / "tools" / "prose.toml"
PATHS: Final = (
    *("*.md", "docs/**/*.md", "deploy/prometheus/rules/*.yaml", "deploy/**/src/main/**/*.java"),
    *("sidecar/**/*.py", "usage_pipeline/**/*.py", "kafka_lab/**/*.py"),
)
_SENTENCE_WORDS: Final = 40
_WORDS_OF_A_TEXT: Final = 3
"""A Python string of fewer words is a value, not a sentence."""
_BREAK: Final = r"\n\s*\n|\n\s*(?:[-*+]|\d+\.) |\n#+ |\|"
"""Between two paragraphs, list items, headings or table cells."""

CheckRegistry().register_many(proselint_checks.__register__)


class Finding(NamedTuple):
    """A phrase to rewrite, with its line."""

    line: int
    advice: str


def check(name: str, text: str, config: dict[str, Any]) -> list[Finding]:
    """Find what to rewrite in a file, in the order of lines.

    Args:
        name: its path; the suffix decides how the text is read.
        text: its content.
        config: the content of ``tools/prose.toml``.
    """
    prose = _READERS[Path(name).suffix](text)
    found = [
        Finding(_line(prose, match.start()), f'"{" ".join(match[0].split())}": {advice}')
        for phrase, advice in config["phrases"].items()
        for match in re.finditer(phrase.replace(" ", r"\s+"), prose, re.IGNORECASE)
    ]
    if name.endswith(".md"):
        found += [*_long_sentences(prose), *_by_proselint(prose, config["proselint_off"])]
    return sorted(set(found))


def markdown(text: str) -> str:
    """The text of a page without code, comments and the targets of links."""
    text = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", _masked, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]+`", _masked, text)
    return re.sub(r"\]\([^)\s]*\)", _masked, text)


def python(text: str) -> str:
    """The comments and strings of a module; other tokens become bars."""
    lines = [re.sub(r"\S", "|", line) for line in text.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_text = tokenize.tok_name[token.type] in {"STRING", "FSTRING_MIDDLE"}
        if token.type == tokenize.COMMENT or (
            is_text and len(token.string.split()) >= _WORDS_OF_A_TEXT
        ):
            row, column = token.start
            for line, part in enumerate(token.string.splitlines(), row - 1):
                lines[line] = lines[line][:column] + part + lines[line][column + len(part) :]
                column = 0
    return re.sub(r"[#\"]", " ", re.sub(r"``?[^`]+``?", _masked, "\n".join(lines)))


def java(text: str) -> str:
    """The comments of a class; code and strings become bars."""
    parts = re.split(r'(//[^\n]*|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*")', text)
    prose = (re.sub(r"[/*]" if part.startswith("/") else r"\S", " ", part) for part in parts)
    return re.sub(r"\{@\w+[^}]*\}", _masked, "".join(prose))


_Reader = Callable[[str], str]
_READERS: dict[str, _Reader] = {".md": markdown, ".py": python, ".java": java, ".yaml": str}


def _long_sentences(prose: str) -> Iterator[Finding]:
    start = 0
    for end in [*re.finditer(_BREAK, prose), None]:
        part = prose[start : end.start() if end else None]
        for sentence in re.finditer(r"\S.*?(?:[.!?][\"')*_]*(?=\s|$)|$)", part, re.DOTALL):
            words = len(re.findall(r"\w\S*", sentence[0]))
            if words > _SENTENCE_WORDS:
                line = _line(prose, start + sentence.start())
                yield Finding(line, f"a sentence of {words} words: split it ({_SENTENCE_WORDS})")
        start = end.end() if end else 0


def _by_proselint(prose: str, off: list[str]) -> Iterator[Finding]:
    checks = {name: name not in off for name in DEFAULT["checks"]}
    for result in LintFile("", prose).lint({**DEFAULT, "checks": checks}):
        yield Finding(result.pos[0], f"{result.check_result.message} (proselint)")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _masked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " " if "\n" in match[0] else "x", match[0])


def main() -> None:
    """Checks the files, and prints the findings."""
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    failed = False
    for path in sorted({path for pattern in PATHS for path in ROOT.glob(pattern)}):
        name = path.relative_to(ROOT).as_posix()
        for line, advice in check(name, path.read_text(encoding="utf-8"), config):
            failed = True
            print(f"{name}:{line}: {advice}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
