"""CONTRIBUTING.md, and what pages say of the Makefile: files, parts and targets exist."""

import os
import re
import subprocess

import pytest

from tests.docs.blocks import PAGES
from tests.docs.markdown import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["sidecar", "usage_pipeline"])
def test_the_layout_has_every_part(folder: str) -> None:
    """Each module and package of a folder is in its picture of the layout, and no other."""
    _, picture = CONTRIBUTING.split(f"```\n{folder}/\n")
    reported = set(re.findall(r"(\w+(?:\.py|/))(?=[,\s])", picture.partition("```")[0]))
    ours = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / folder).iterdir()
        # A folder that a switch of branches left has bytecode alone.
        if (path.suffix == ".py" and path.name[0] != "_") or (path / "__init__.py").exists()
    }
    assert ours == reported


def test_files_that_are_named_exist() -> None:
    """Each path in the text is in the checkout."""
    named = set(re.findall(r"`((?:sidecar|tests|docs|deploy)/[\w./-]*)`", CONTRIBUTING))
    assert 15 < len(named)
    assert [] == [path for path in sorted(named) if not (ROOT / path).exists()]


def test_names_that_are_named_exist() -> None:
    """Each class, function, field or constant of a step is defined in sidecar/; none is private."""
    _, _, steps = CONTRIBUTING.partition("\n## Add a type of limit\n")
    named = set(re.findall(r"`(?:[A-Z]\w+\.)?([A-Za-z_]\w*)(?:\(\w*\))?`", steps))
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "sidecar").rglob("*.py"))
    defined = set(re.findall(r"(?:class |def |^ *|[(,] ?)(\w+)(?:[(:]| = )", code, re.MULTILINE))
    assert 10 < len(named)
    assert [] == [
        name
        for name in sorted(named)
        if name.startswith("_") or not any(each.startswith(name) for each in defined)
    ]


def test_make_knows_the_targets_that_are_named() -> None:
    """It knows each ``make TARGET`` on a page."""
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert [] == [
        (name, target)
        for name, page in PAGES.items()
        for target in re.findall(
            r"(?:`|^\$ |^)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        if target not in targets
    ]


def test_make_jar_says_where_the_jar_lies() -> None:
    """It says so also when there is nothing to be done."""
    jar = "deploy/quota-callback/target/throttle-sidecar-quota-callback.jar"
    assert [str(ROOT / jar)] == said_by_make(f"--old-file={jar}", "jar").splitlines()


def test_no_option_of_make_is_a_variable_of_its_own() -> None:
    """A target would pass on what nobody has given."""
    options = set(re.findall(r"\$\(if \$\((\w+)\),--", MAKEFILE))
    defined = set(re.findall(r"^(\w+) *[:?]?=", MAKEFILE, re.MULTILINE))
    assert {"SEED", "MINUTES", "BROKERS"} <= options
    assert set() == options & defined


def said_by_make(*arguments: str) -> str:
    """What make prints, outside of any other make."""
    make = ["make", "--no-print-directory", f"--directory={ROOT}", *arguments]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(make, capture_output=True, text=True, check=True, env=environ).stdout
