"""A history that is read back."""

import gzip
from pathlib import Path

import pytest

from sidecar.errors import SidecarError
from sidecar.history.folder import Folder
from sidecar.history.reader import HistoryReader
from sidecar.history.volume_line import to_line
from sidecar.volumes import Observation, OfflineLogDir, Reading, Volume

HOUR_S = 1_767_600_000.0
"""Of 2026-01-05, 08:00 UTC."""


def seen(at: float, *brokers: int) -> Observation:
    """What brokers with one volume each answer, the second log dir offline."""
    return Observation(
        at,
        "poll",
        None,
        {
            each: Reading(each, at, (Volume(each, "/d1", 100, 40),), (OfflineLogDir("/d2", "x"),))
            for each in brokers
        },
    )


def write(
    folder: Path, origin: str, *observations: Observation, cluster_id: str | None = None
) -> None:
    for each in observations:
        line = to_line(each, origin, each.observed_at, cluster_id)
        Folder(folder, origin, 1 << 30).append(line, each.observed_at)


def test_observations_come_by_time_whoever_wrote_them(tmp_path: Path) -> None:
    """Of several hours and sidecars, packed or not; what is foreign or torn is passed over."""
    write(tmp_path, "a", seen(HOUR_S + 1, 1, 2), seen(HOUR_S + 61, 1), seen(HOUR_S + 3601, 1))
    write(tmp_path, "b", seen(HOUR_S + 31, 2))
    plain = tmp_path / "volumes-a-20260105T08.jsonl"
    with plain.open("ab") as file:
        file.write(b'{"time":"torn')
    # A crash between packing and removing leaves both: a line counts once.
    (tmp_path / "volumes-a-20260105T08.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "volumes-a-20260105T08.jsonl.gz.tmp").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("not ours")
    reader = HistoryReader(tmp_path, 300.0)
    found = list(reader.observations())
    assert [1.0, 31.0, 61.0, 3601.0] == [each.observed_at - HOUR_S for each in found]
    assert ["a", "b", "a", "a"] == [each.origin for each in found]
    assert 2 == reader.damaged_lines
    first = found[0].answers[2]
    assert isinstance(first, Reading)
    assert (Volume(2, "/d1", 100, 40),) == first.volumes
    assert ["/d2"] == [each.log_dir for each in first.offline]


def test_a_line_for_each_volume_is_one_observation(tmp_path: Path) -> None:
    """As other programs write them: the same time and origin, and the fullest broker is there."""
    write(tmp_path, "a", seen(HOUR_S, 1), seen(HOUR_S, 2), seen(HOUR_S, 3))
    (found,) = HistoryReader(tmp_path, 300.0).observations()
    assert [1, 2, 3] == list(found.answers)


def test_a_broker_counts_that_only_its_volumes_name(tmp_path: Path) -> None:
    """Nothing of a line is left out."""
    write(tmp_path, "a", seen(HOUR_S, 1))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes().replace(b'"brokers":[1]', b'"brokers":[]'))
    (found,) = HistoryReader(tmp_path, 300.0).observations()
    assert [1] == list(found.answers)


def test_the_first_line_that_can_t_be_read_is_named(tmp_path: Path) -> None:
    """With file, line and field."""
    write(tmp_path, "a", seen(HOUR_S, 1), seen(HOUR_S + 60, 1), seen(HOUR_S + 120, 1))
    (file,) = tmp_path.iterdir()
    first, *rest = file.read_bytes().replace(b"40", b"0.5").splitlines(keepends=True)
    file.write_bytes(first.replace(b"0.5", b"40") + b"".join(rest))
    reader = HistoryReader(tmp_path, 300.0)
    assert 1 == len(list(reader.observations()))
    assert 2 == reader.damaged_lines
    assert (
        "volumes-a-20260105T08.jsonl, line 2: field volumes[0].available_bytes: Expected `int`, got"
        " `float`; a size is a whole number of bytes"
    ) == reader.first_damage


def test_a_broker_is_a_member_while_its_last_line_is_valid(tmp_path: Path) -> None:
    """A line of some brokers alone says nothing of the others, until they are silent for long."""
    write(tmp_path, "a", seen(HOUR_S, 1, 2), seen(HOUR_S + 60, 1), seen(HOUR_S + 61, 1))
    found = list(HistoryReader(tmp_path, 60.0).observations())
    members = [set(each.membership.active) for each in found if each.membership]
    assert [{1, 2}, {1, 2}, {1}] == members


def test_a_packed_hour_that_is_cut_off_counts_as_damaged(tmp_path: Path) -> None:
    """The hours behind it are read."""
    write(tmp_path, "a", seen(HOUR_S, 1), seen(HOUR_S + 3600, 1))
    plain = tmp_path / "volumes-a-20260105T08.jsonl"
    (tmp_path / f"{plain.name}.gz").write_bytes(gzip.compress(plain.read_bytes())[:-12])
    plain.unlink()
    reader = HistoryReader(tmp_path, 300.0)
    assert HOUR_S + 3600 == list(reader.observations())[-1].observed_at
    assert 1 == reader.damaged_lines
    assert f"{plain.name}.gz, after line 0: the file is cut off" == reader.first_damage


def test_an_hour_that_is_compressed_or_removed_meanwhile_stops_no_reader(tmp_path: Path) -> None:
    """The sidecar goes on writing while 08 is read: 09 is then compressed, and 10 is gone."""
    write(tmp_path, "a", *(seen(HOUR_S + 3600 * hour, 1) for hour in range(4)))
    observations = HistoryReader(tmp_path, 300.0).observations()
    assert HOUR_S == next(observations).observed_at
    nine, ten = (tmp_path / f"volumes-a-20260105T{hour}.jsonl" for hour in ("09", "10"))
    (tmp_path / f"{nine.name}.gz").write_bytes(gzip.compress(nine.read_bytes()))
    nine.unlink()
    ten.unlink()
    assert [3600.0, 3 * 3600.0] == [each.observed_at - HOUR_S for each in observations]


def test_only_what_was_observed_since_a_time_is_read(tmp_path: Path) -> None:
    """Not the observations before it in the same hour, and not the files of earlier hours."""
    write(tmp_path, "a", seen(HOUR_S - 1, 1), seen(HOUR_S + 1, 1), seen(HOUR_S + 2, 1))
    (tmp_path / "volumes-a-20260105T07.jsonl").write_bytes(b"torn")
    reader = HistoryReader(tmp_path, 300.0, since_s=HOUR_S + 2)
    assert [HOUR_S + 2] == [each.observed_at for each in reader.observations()]
    assert 0 == reader.damaged_lines


def test_a_folder_of_two_clusters_is_refused(tmp_path: Path) -> None:
    """Brokers of both have the same ids, so their volumes can't be told apart."""
    write(tmp_path, "a", seen(HOUR_S, 1))
    write(tmp_path, "b", seen(HOUR_S, 1), seen(HOUR_S + 60, 1), cluster_id="PROD")
    assert 3 == len(list(HistoryReader(tmp_path, 300.0).observations()))
    write(tmp_path, "c", seen(HOUR_S + 30, 1), cluster_id="TEST")
    with pytest.raises(SidecarError, match=r"PROD .*TEST .*move the files, or the lines, of"):
        list(HistoryReader(tmp_path, 300.0).observations())


def test_a_folder_that_can_t_be_read(tmp_path: Path) -> None:
    """The error names it."""
    with pytest.raises(SidecarError, match="gone"):
        list(HistoryReader(tmp_path / "gone", 300.0).observations())
