"""What the container's files show without building them; ``test_container.py`` builds them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar import __version__

ROOT = Path(__file__).parents[2]
DOCKERFILES = ("Dockerfile", "deploy/spark/Dockerfile")


@pytest.mark.slow
@pytest.mark.parametrize("path", DOCKERFILES)
def test_the_linter_finds_nothing(path: str) -> None:
    """It is Hadolint, with the shell's linter in it."""
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, path], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("path", DOCKERFILES)
def test_all_that_is_copied_is_sent(path: str) -> None:
    """.dockerignore sends only what it names, and each COPY finds its sources."""
    sent = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = re.findall(
        r"^COPY (?!--from)(?:--chmod=755 )?(.*) \S+$", (ROOT / path).read_text(), re.MULTILINE
    )
    sources = [Path(source) for line in copied for source in line.split()]
    assert sources
    assert [] == [
        source
        for source in sources
        if not any(each.match(line) for line in sent for each in (source, *source.parents))
    ]


def test_one_version_for_all() -> None:
    """The package, the image's label and the jar's pom have it."""
    label = re.search(r'image\.version="(.*)"', (ROOT / "Dockerfile").read_text())
    pom = (ROOT / "deploy/quota-callback/pom.xml").read_text()
    jar = re.search(
        r"<artifactId>throttle-sidecar-quota-callback</artifactId>\s*<version>(.*?)</version>", pom
    )
    assert label is not None
    assert jar is not None
    assert (__version__, __version__) == (label[1], jar[1])


@pytest.mark.parametrize(
    ("part", "needs"),
    [
        ("build", {"editables", "hatchling"}),
        ("uv", {"uv"}),
        ("demo", {"aiokafka", "confluent-kafka"}),
        ("pipeline", {"confluent-kafka", "pyspark"}),
    ],
)
def test_a_part_is_locked(part: str, needs: set[str]) -> None:
    """Each package of it has its hashes, at the version that the tests run with."""
    locked, dev = (
        set(re.findall(r"^([a-z0-9-]+)==(.+) \\$", file.read_text(), re.MULTILINE))
        for file in (ROOT / f"requirements-{part}.txt", ROOT / "requirements-dev.txt")
    )
    assert needs <= {name for name, _ in locked}
    assert set() == locked - dev
