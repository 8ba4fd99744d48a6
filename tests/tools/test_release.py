"""What ``make release`` refuses, and what it changes; tests/integration/test_release.py runs it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar import __version__
from tools.release import RefusedError, absolute, check, section

ROOT = Path(__file__).parents[2]
URL = "https://git.example.org/team/throttle-sidecar"
FILES = (
    *("CHANGELOG.md", "Dockerfile", "sidecar/__init__.py", "usage_pipeline/pyproject.toml"),
    *("deploy/helm/throttle-sidecar/Chart.yaml", "deploy/quota-callback/pom.xml"),
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that have the version, without changes."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (["init"], ["add", "--all"], ["commit", "--message", "all"]):
        subprocess.run(
            ["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, timeout=60
        )
    return tmp_path


def test_a_checkout_of_the_version_is_accepted(checkout: Path) -> None:
    """All files have the version, and the changelog has its section."""
    check(checkout, __version__, URL)


@pytest.mark.parametrize(
    ("version", "url", "reason"),
    [
        (__version__, "", "REPOSITORY_URL is '': set it to the address"),
        (__version__, "git@example.org:team/name.git", "REPOSITORY_URL is 'git@example.org"),
        (__version__, f"{URL}/", "without a slash at its end"),
        ("9.9.9", URL, f"VERSION is '9.9.9', but sidecar/__init__.py has '{__version__}'"),
        ("", URL, f"VERSION is '', but sidecar/__init__.py has '{__version__}'"),
    ],
)
def test_a_release_without_its_address_or_of_another_version_is_refused(
    checkout: Path, version: str, url: str, reason: str
) -> None:
    """The message says which value is wrong."""
    with pytest.raises(RefusedError, match=re.escape(reason)):
        check(checkout, version, url)


@pytest.mark.parametrize("name", FILES[1:])
def test_a_version_that_was_forgotten_is_named(checkout: Path, name: str) -> None:
    """Each file that has the version is compared."""
    text = (checkout / name).read_text()
    (checkout / name).write_text(text.replace(__version__, "0.0.9"))
    with pytest.raises(RefusedError, match=re.escape(name)):
        check(checkout, __version__, URL)


@pytest.mark.parametrize("name", ["Dockerfile", "new"])
def test_changes_are_refused(checkout: Path, name: str) -> None:
    """They would be in no commit."""
    with (checkout / name).open("a") as file:
        file.write("\n")
    with pytest.raises(RefusedError, match=f"git shows changes: .* {name}"):
        check(checkout, __version__, URL)


def test_the_notes_are_the_versions_section() -> None:
    """It ends at the next version's heading."""
    changelog = (
        "# Changelog\n\n## Unreleased\n\n- a\n\n## 1.1.0 - 2026-01-02\n\n- b\n\n## 1.0.0\n\n- c\n"
    )
    assert ["- b\n", "- c\n"] == [section(changelog, version) for version in ("1.1.0", "1.0.0")]
    for version in ("1.1", "1.2.0"):
        with pytest.raises(RefusedError, match=f"CHANGELOG.md says nothing about {version}:"):
            section(changelog, version)


def test_every_link_leads_to_the_tag() -> None:
    """Pictures are raw files; addresses and anchors stay."""
    text = "[a](docs/a.md#b) ![c](docs/c.svg) [d](https://d.example.org) [e](#e)\n"
    assert (
        f"[a]({URL}/blob/v1.0.0/docs/a.md#b) ![c]({URL}/raw/v1.0.0/docs/c.svg)"
        " [d](https://d.example.org) [e](#e)\n"
    ) == absolute(text, URL, "1.0.0")


def test_a_link_of_another_form_is_refused() -> None:
    """An index could not follow it."""
    with pytest.raises(RefusedError, match=r"these links are relative: docs/a\.md"):
        absolute("[a][1]\n\n[1]: docs/a.md\n", URL, "1.0.0")


def test_no_link_of_the_readme_is_relative() -> None:
    """The page that an index shows leads to the repository's files."""
    text = absolute((ROOT / "README.md").read_text(), URL, __version__)
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert [] == [each for each in targets if not each.startswith("https://")]
    assert f"{URL}/raw/v{__version__}/docs/demo.svg" in targets


@pytest.mark.slow
def test_the_workflow_is_a_valid_one_without_an_address_of_its_own() -> None:
    """Schema of GitHub's workflows; the only hosts are the registries that it publishes to."""
    workflow = ROOT / ".github/workflows/release.yaml"
    checker = Path(sys.executable).with_name("check-jsonschema")
    command = [str(checker), "--builtin-schema", "vendor.github-workflows", str(workflow)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert 0 == done.returncode, done.stdout
    text = workflow.read_text()
    assert {"maven.pkg.github.com/$GITHUB_REPOSITORY"} == set(
        re.findall(r"https://([^\s\"]+)", text)
    )
    assert {"$GITHUB_REPOSITORY_OWNER", "$GITHUB_REPOSITORY"} == {
        f"${name}" for name in re.findall(r"ghcr\.io/\$\{(\w+),,\}", text)
    }


def test_no_page_and_no_message_installs_a_name_from_an_index() -> None:
    """The names are not ours until they are claimed: folders, files and locks are installed."""
    listed = ["git", "ls-files", "*.md", "*.py", "*.toml", "*.txt", "*.yaml", "*.tpl", "Dockerfile"]
    done = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    names = [name for name in done.stdout.splitlines() if not name.startswith("tests/")]
    named = re.compile(
        r"(?:pip|pipx|uv tool) install [^\n]*?(?<![\w/.])(throttle-sidecar[\w\[-]*)(?!/)"
    )
    assert [] == [
        f"{name}: {found[0]}"
        for name in names
        for found in named.finditer((ROOT / name).read_text())
    ]
