"""The files of a path, and whose they are."""

from pathlib import Path

import pytest

from sidecar.pipeline.paths import (
    LogFile,
    RequestLogsError,
    Zones,
    broker_of,
    log_files,
    open_input,
)

UTC = Zones()


def put(folder: Path, *names: str) -> None:
    """Files with their names in them."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/logs/broker-3.log", 3),
        ("/logs/broker-3.log.2026-11-20-10.gz", 3),
        ("/logs/my-cluster-kafka-12/kafka-request.log", 12),
        ("/var/log/3/kafka-request.log", 3),
        ("s3://logs/broker-1/2026/11/kafka_2/request.log", 2),
        ("/opt/kafka_2.13-4.3.1/logs/broker-5/kafka-request.log", 5),
        ("/opt/kafka-3.9.1/7/kafka-request.log", 7),
        ("broker-3.2026-11-20", 3),
        ("/node31.2026/x", 31),
    ],
)
def test_whose_a_file_is(path: str, expected: int) -> None:
    """The last broker, kafka or node with a number, no version; else a folder of digits."""
    assert expected == broker_of(path)


@pytest.mark.parametrize(
    "path", ["/logs/kafka-request.log", "/opt/kafka_2.13-4.3.1/x", "/logs/broker-9999999999.log"]
)
def test_whose_it_is_must_be_told(path: str) -> None:
    """What to give is said."""
    with pytest.raises(RequestLogsError, match=r"give a pattern .*\(\?P<broker>"):
        broker_of(path)


def test_files_of_a_folder(tmp_path: Path) -> None:
    """All below it in order, packed ones too, but hidden ones."""
    put(tmp_path, "2/b.log", "2/b.log.1.gz", "1/a.log", "1/.a.log.swp", "_temporary/3/x.log")
    assert [
        LogFile(f"{tmp_path}/1/a.log", 1, "Europe/Berlin", 7),
        LogFile(f"{tmp_path}/2/b.log", 2, "UTC", 7),
        LogFile(f"{tmp_path}/2/b.log.1.gz", 2, "UTC", 12),
    ] == list(log_files(str(tmp_path), Zones.of(["2=UTC", "Europe/Berlin"])))
    packed = [file.packed for file in log_files(str(tmp_path), UTC)]
    assert [False, False, True] == packed


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*/a.log", ["1/a.log", "2/a.log"]),
        ("**/a.log", ["1/a.log", "2/a.log", "2/deep/a.log"]),
        ("[!1]/**", ["2/a.log", "2/b.log", "2/deep/a.log"]),
        ("?/[ab].log", ["1/a.log", "2/a.log", "2/b.log"]),
        ("2/b.log", ["2/b.log"]),
        ("2", ["2/a.log", "2/b.log", "2/deep/a.log"]),
        ("2/", ["2/a.log", "2/b.log", "2/deep/a.log"]),
    ],
)
def test_globs(tmp_path: Path, glob: str, expected: list[str]) -> None:
    """As shells have them; in a file's own address, with its scheme, too."""
    put(tmp_path, "1/a.log", "2/a.log", "2/b.log", "2/deep/a.log")
    pattern = r"/(?P<broker>[12])/"
    for at, root in ((str(tmp_path), tmp_path), (tmp_path.as_uri(), tmp_path.as_uri())):
        if "?" in glob and "://" in at:
            continue  # There, a question mark begins options.
        found = log_files(f"{at}/{glob}", UTC, pattern)
        assert [f"{root}/{name}" for name in expected] == [file.path for file in found]
        with open_input(found[0].path) as opened:
            assert expected[0].encode() == opened.read()


def test_a_files_name_is_what_it_is(tmp_path: Path) -> None:
    """In a store too a blank, a percent sign and a question mark are no more than that."""
    for name in ("a b.log", "a%20b.log", "a?b.log", "a#b@c:d.log"):
        folder = tmp_path / "broker-7"
        put(folder, name)
        (found,) = log_files(tmp_path.as_uri(), UTC)
        assert f"{folder.as_uri()}/{name}" == found.path
        with open_input(found.path, found.options) as opened:
            assert name.encode() == opened.read()
        (folder / name).unlink()


def test_a_pattern_of_the_callers(tmp_path: Path) -> None:
    """It finds the broker where the usual ones don't."""
    put(tmp_path, "host-a17.log")
    found = log_files(str(tmp_path), UTC, r"host-a(?P<broker>\d+)")
    assert [17] == [file.broker for file in found]


@pytest.mark.parametrize("path", ["", "nothing", "*.txt", "nothing/*.log"])
def test_no_files(tmp_path: Path, path: str) -> None:
    """That there are none is said, with the path."""
    put(tmp_path, ".hidden-broker-1")
    with pytest.raises(RequestLogsError, match="there are no files"):
        log_files(f"{tmp_path}/{path}", UTC)


@pytest.mark.parametrize(
    ("pattern", "message"), [("(", "the broker pattern '\\('"), ("(.*)", "has no group")]
)
def test_a_pattern_that_is_none(tmp_path: Path, pattern: str, message: str) -> None:
    """It is refused before anything is read."""
    put(tmp_path, "broker-1")
    with pytest.raises(RequestLogsError, match=message):
        log_files(str(tmp_path), UTC, pattern)


@pytest.mark.parametrize("path", ["s4://bucket/x", "s4://bucket/*.log"])
def test_an_unknown_store(path: str) -> None:
    """It is refused, with the path."""
    with pytest.raises(RequestLogsError, match="s4://bucket"):
        log_files(path, UTC)


def test_zones() -> None:
    """A default and exceptions, told in any order, and told again in the same words."""
    zones = Zones.of(["3=UTC", "Europe/Berlin", "4=Asia/Kolkata"])
    assert ["Europe/Berlin", "UTC", "Asia/Kolkata"] == [zones.name_of(id_) for id_ in (1, 3, 4)]
    assert zones == Zones.of(str(zones).split(","))
    assert "UTC" == Zones.of([]).name_of(3)


@pytest.mark.parametrize(
    ("told", "message"),
    [("Europe/Bonn", "no time zone"), ("3=", "no time zone"), ("x=UTC", "told as 3=Europe/Berlin")],
)
def test_zones_that_are_none(told: str, message: str) -> None:
    """What can be told is said."""
    with pytest.raises(RequestLogsError, match=message):
        Zones.of([told])
