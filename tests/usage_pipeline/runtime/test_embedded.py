"""Spark's JVM on this machine."""

from pathlib import Path

import pyarrow as pa
import pytest

from usage_pipeline.runtime import embedded


@pytest.mark.parametrize(
    ("master", "memory"),
    [("local", "576m"), ("local[2]", "640m"), ("local[16,3]", "1536m"), ("local[*]", "768m")],
)
def test_a_short_runs_heap_follows_its_cores(
    master: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each core's task needs some of it; a long run's heap is fixed."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 5})
    assert memory == embedded.settings(master, brief=True)["spark.driver.memory"]
    assert "1g" == embedded.settings(master, brief=False)["spark.driver.memory"]


def test_only_a_short_run_is_compiled_for_one() -> None:
    """A stream's JVM has hours to get ready."""
    for brief in (True, False):
        settings = embedded.settings("local[2]", brief=brief)
        options = settings[embedded.JAVA_OPTIONS].split()
        assert brief == ("-XX:TieredStopAtLevel=1" in options)
        assert brief == ("spark.sql.codegen.wholeStage" in settings)
        (log4j,) = [each for each in options if each.startswith("-Dlog4j2.configurationFile=")]
        assert Path(log4j.partition("=")[2]).is_file()


def test_what_is_set_stays() -> None:
    """This holds for the environment that the JVM inherits, and for this process's memory."""
    before = pa.default_memory_pool()
    try:
        pa.set_memory_pool(pa.mimalloc_memory_pool())
        embedded.prepare({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"})
        assert "mimalloc" == pa.default_memory_pool().backend_name
        environ = {"MALLOC_ARENA_MAX": "8"}
        embedded.prepare(environ)
        environment = (environ["MALLOC_ARENA_MAX"], environ["ARROW_DEFAULT_MEMORY_POOL"])
        assert ("8", "system", "system") == (*environment, pa.default_memory_pool().backend_name)
    finally:
        pa.set_memory_pool(before)


def test_a_cluster_is_not_embedded() -> None:
    """Another process starts the JVMs of a cluster."""
    found = [embedded.is_embedded(name) for name in ("local", "local[*]", "spark://a:1", "yarn")]
    assert [True, True, False, False] == found
