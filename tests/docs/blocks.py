"""The console blocks of the pages, which of them are run, and running them.

Right before each ```` ```console ```` block stands a comment, ``<!-- run: WHERE, OPTIONS -->`` or
``<!-- not run: why -->``; one with a program of ``MACHINES`` needs none, since it is for a machine
of the reader's. WHERE is

- ``alone``: nothing else is needed;
- ``sidecar``: a disabled sidecar, which refuses overrides, at 127.0.0.1:7070;
- ``cluster``: a real broker, at b1:9092 and localhost:9092, and a sidecar that sees it; the
  daemon's settings are in the environment;
- ``secured``: a real broker with an authorizer, at b1:9094 with SCRAM over TLS and at b1:9095 with
  mutual TLS, and Kafka's own tools; what is in /etc/throttle-sidecar is in a folder of the test's;
- ``demo``: a demo's cluster that is left running, with $BROKERS and $SIDECAR
  (tests/kafka_lab/cli/test_demo.py);
- ``spark``: a local Spark.

Options: ``exit N`` of the last command, else 0; ``as shown``: each line that is shown is printed,
in this order, where "…" stands for anything and spaces don't count; ``A as B``: a text is another
one, such as a smaller size. A page's blocks of one WHERE are run in turn, in one folder. What they
read is another block after ``<!-- file: NAME -->``, or the rest of a comment that begins so.
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.markdown import ROOT

PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "runbooks", ROOT / "benchmarks" / "results")
    for path in sorted(folder.glob("*.md"))
}

MACHINES = ("docker", "helm", "kubectl", "pipx", "sudo")
"""Programs of containers, of Kubernetes, and of a machine's owner."""

_DEADLINE_S = 500.0
"""Seconds for a block: Spark's first start takes minutes; pytest has its own time-outs."""

_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_HIDDEN = re.compile(r"^<!-- file: (\S+)\n(.*?)^-->$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (run|not run|file): (.*) -->\n+ *$")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a block.

    Attributes:
        line: the shell's input.
        shown: what the page shows it to print.
    """

    line: str
    shown: str


@dataclass(frozen=True, slots=True)
class Block:
    """A console block.

    Attributes:
        page: such as docs/quotas-planning.md.
        line: where it begins there.
        mark: "run", "not run" or "" when it has none.
        where: where it is run; why it is not.
        commands: in order.
        exit_code: of the last.
        as_shown: whether what is printed is compared.
        instead: text -> what is run instead.
    """

    page: str
    line: int
    mark: str
    where: str
    commands: Sequence[Command]
    exit_code: int = 0
    as_shown: bool = False
    instead: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_for_a_machine(self) -> bool:
        """Whether it has one of ``MACHINES``."""
        return any(command.line.split()[0] in MACHINES for command in self.commands)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """The console blocks of a page, in order."""
    text = PAGES[page].read_text(encoding="utf-8")
    found = []
    for match in _FENCED.finditer(text):
        if match[2] != "console":
            continue
        mark = _MARK.search(text[: match.start()] + match[1])
        kind, reported = (mark[1], mark[2]) if mark else ("", "")
        where, *options = reported.split(", ") if kind == "run" else [reported]
        exits = [int(each.removeprefix("exit ")) for each in options if each.startswith("exit ")]
        found.append(
            Block(
                page,
                text.count("\n", 0, match.start()) + 1,
                kind,
                where,
                commands(textwrap.dedent(match[3])),
                exits[0] if exits else 0,
                "as shown" in options,
                dict(each.split(" as ", 1) for each in options if re.match(r"\S+ as \S+$", each)),
            )
        )
    return found


def commands(text: str) -> list[Command]:
    """The commands of a block's text, with what is shown after each."""
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        taken = 1
        while taken < len(lines) and not _is_whole("".join(lines[:taken])):
            taken += 1
        found.append(Command("".join(lines[:taken]).rstrip("\n"), "".join(lines[taken:])))
    return found


def files(page: str) -> dict[str, str]:
    """What the blocks of a page read: name -> text."""
    text = PAGES[page].read_text(encoding="utf-8")
    found = {match[1]: match[2] for match in _HIDDEN.finditer(text)}
    for match in _FENCED.finditer(text):
        mark = _MARK.search(text[: match.start()] + match[1])
        if mark and mark[1] == "file":
            found[mark[2]] = textwrap.dedent(match[3])
    return found


def run(
    page: str, where: str, folder: Path, instead: Mapping[str, str], environ: Mapping[str, str]
) -> None:
    """Run the blocks of a page that are run there, in one folder; an AssertionError if one fails.

    Args:
        page: such as docs/quotas-planning.md.
        where: such as "alone".
        folder: an empty one.
        instead: text -> what is there for it, such as addresses.
        environ: besides what every program needs; PATH is searched after ours.
    """
    program = folder / "bin" / "throttle-sidecar"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m sidecar "$@"\n')
    program.chmod(0o755)
    # An answer of 400 or more ends curl with 22.
    (folder / ".curlrc").write_text("fail\n")
    work = folder / "work"
    work.mkdir()
    for name, text in files(page).items():
        (work / name).write_text(_replaced(text, instead), encoding="utf-8")
    needed = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    path = environ.get("PATH", os.environ["PATH"])
    env = {
        **needed,
        **environ,
        "PATH": f"{program.parent}:{Path(sys.executable).parent}:{path}",
        "PYTHONPATH": str(ROOT),
        "CURL_HOME": str(folder),
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
    }
    for block in blocks(page):
        if (block.mark, block.where) == ("run", where):
            _run(block, work, {**instead, **block.instead}, env)


def _run(block: Block, work: Path, instead: Mapping[str, str], environ: Mapping[str, str]) -> None:
    lines = [_replaced(each.line, instead) for each in block.commands]
    script = "".join(f"{_apart(line)}\nprintf '\\n@@ %s\\n' $?\n" for line in lines)
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=work,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=_DEADLINE_S)
    finally:
        # What a block has left in the background; the process group is its own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    *outputs, _ = re.split(r"\n@@ (\d+)\n", said)
    codes = [int(code) for code in outputs[1::2]]
    assert [*[0] * (len(lines) - 1), block.exit_code] == codes, f"{block}:\n{said}"
    if block.as_shown:
        for command, output in zip(block.commands, outputs[::2], strict=True):
            shown = _replaced(command.shown, instead)
            assert is_shown(shown, output), f"{block}: {command.line}\n{output}"


def is_shown(shown: str, output: str) -> bool:
    """Whether each line that is shown is in the output, in this order, whatever the spaces."""
    printed = re.sub(r"\s", "", output)
    pieces = [re.escape(each) for each in re.split(r"[…\n]", re.sub(r"[^\S\n]", "", shown)) if each]
    return re.search(".*".join(pieces), printed) is not None


def _replaced(text: str, instead: Mapping[str, str]) -> str:
    for old, new in instead.items():
        text = text.replace(old, new)
    return text


def _apart(line: str) -> str:
    # What runs on in the background must not keep open the pipe, nor write into others' output.
    if line.endswith("&"):
        return f"{line.removesuffix('&')} >background.log 2>&1 &"
    return line


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return not text.rstrip("\n").endswith("\\")


BLOCKS = [block for page in PAGES for block in blocks(page)]


def pages_with(where: str) -> list[str]:
    """The pages that have a block that is run there."""
    return sorted({block.page for block in BLOCKS if ("run", where) == (block.mark, block.where)})
