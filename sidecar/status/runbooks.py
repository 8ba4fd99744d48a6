"""The runbooks as pages. A wheel has copies of docs/runbooks; a checkout has the files themselves.

Their Markdown is read by markdown-it-py, which ``rich`` needs anyway. It escapes HTML. A link to
another runbook leads to its page here; a link to any other document stays as text with its path.

Example: ``runbook("KafkaThrottleFlaps")`` is the HTML of docs/runbooks/KafkaThrottleFlaps.md.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it.token import Token

_FOLDERS: Final = (
    files("sidecar").joinpath("runbooks"),
    Path(__file__).parents[2] / "docs" / "runbooks",
)
_INDEX: Final = "README"
_RUNBOOK: Final = re.compile(r"([\w-]+)\.md(#.*)?")


@cache
def names() -> tuple[str, ...]:
    """Return the names of all runbooks, by alphabet."""
    return tuple(sorted(_files().keys() - {_INDEX}))


@cache
def runbook(name: str) -> Markup:
    """Return a runbook as HTML; KeyError if no runbook has this name."""
    return _html(_files()[name].read_text(encoding="utf-8"))


def index() -> Markup:
    """Return the page that introduces the runbooks as HTML."""
    return runbook(_INDEX)


@cache
def _files() -> dict[str, Traversable]:
    # A name from a request is only looked up here, so it never becomes a path.
    folder = next(each for each in _FOLDERS if each.is_dir())
    return {file.name.removesuffix(".md"): file for file in folder.iterdir()}


def _html(text: str) -> Markup:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 0.2 s, which only a runbook needs

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.type == "heading_open":
            before.attrSet("id", _anchor(token.content))
        _relink(token.children or ())
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704 - it escapes


def _anchor(heading: str) -> str:
    """Return the id of a heading, as Git hosts make it: "When it ends" is "when-it-ends"."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _relink(tokens: Iterable["Token"]) -> None:
    path = ""
    for token in tokens:
        if token.type == "link_open":
            href = str(token.attrGet("href"))
            if found := _RUNBOOK.fullmatch(href):
                name = "" if found[1] == _INDEX else found[1]
                token.attrSet("href", f"/runbooks/{name}{found[2] or ''}")
            elif href.startswith("../"):
                path, token.hidden = f" [docs/{href[3:].partition('#')[0]}]", True
        elif token.type == "link_close" and path:
            token.type, token.content, path = "text", path, ""
