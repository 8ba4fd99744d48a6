"""Commands keep Java's classes in a cache."""

from pathlib import Path

import pytest

from usage_pipeline.cli import java_classes as module
from usage_pipeline.cli.java_classes import java_classes, keep_java_classes
from usage_pipeline.runtime.class_archive import ClassArchive, NotKeptError


def test_they_are_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is the user's; another JVM has none of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = java_classes(None, whole=True)
    assert found is not None
    assert tmp_path / "throttle-sidecar" == found.file.parent
    assert found == java_classes("local[2]", whole=True)
    assert java_classes("spark://there:7077", whole=True) is None
    monkeypatch.setenv("MASTER", "yarn")
    assert java_classes(None, whole=True) is None
    monkeypatch.delenv("MASTER")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert java_classes(None, whole=True) is None


def test_a_user_without_a_home_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user has no home: the run goes on without a cache."""

    def nowhere(_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(module, "cache_folder", nowhere)
    assert java_classes(None, whole=True) is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotKeptError("Java ended with 1"), "the next run tries again: Java ended with 1"),
        (KeyboardInterrupt(), "not stored; the run is complete."),
    ],
)
def test_what_goes_wrong_is_reported_and_is_no_error(
    error: BaseException,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The tables are written by then."""

    def fails(_: ClassArchive) -> None:
        raise error

    monkeypatch.setattr("usage_pipeline.runtime.session.keep_classes", fails)
    keep_java_classes(ClassArchive(Path("classes.jsa"), None))
    keep_java_classes(None)
    assert not capsys.readouterr().err
    keep_java_classes(ClassArchive(Path("classes.jsa"), Path("partial")))
    assert words in capsys.readouterr().err
