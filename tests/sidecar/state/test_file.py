"""The state file is replaced whole, and whatever is wrong with it is reported, not raised."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.control.board import PersistedState
from sidecar.state import Damaged, StateFile
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, whole

NOW = 2_000_000_000.0
LIMIT = MinAvailableBytes(10)
RULES = Rules(LIMIT, 300.0)

PLAIN: Mapping[str, object] = {
    "limit": {"available_bytes": 10},
    "membership": None,
    "brokers": [],
    "computed": None,
    "override": None,
    "user_throttles": [],
    "retained": {},
    "factor": 1.0,
    "source": "fallback",
    "since": 5.0,
}
"""The smallest state, as it is written."""


def unmoved(steady_s: float) -> float:
    return steady_s


def something() -> PersistedState:
    """Two brokers, one of them full, and an override."""
    memory = Memory(override=Override(0.5, "a “migration”", NOW - 60, NOW + 60))
    seen = whole(NOW, [reading(1, NOW, {"/d0": 5, "/d1": 50}), reading(2, NOW, {"/d0": 99})])
    memory = VolumeLimit(RULES, 1.0).fold(memory, seen)
    return PersistedState(memory, 0.5, Source.OVERRIDE, NOW - 60)


@pytest.fixture
def file(tmp_path: Path) -> StateFile:
    return StateFile(tmp_path / "state.json", RULES)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, PersistedState]:
    """The bytes of ``something`` and what they are read as."""
    file = StateFile(tmp_path_factory.mktemp("state") / "state.json", RULES)
    file.save(something(), unmoved)
    loaded = file.load(NOW)
    assert isinstance(loaded, PersistedState)
    return file.path.read_bytes(), loaded


def with_checksum(state: Mapping[str, object], version: int = 1) -> bytes:
    """A file with a right checksum, whatever it says."""
    canonical = json.dumps(state, sort_keys=True, separators=(",", ":"))
    checksum = hashlib.sha256(canonical.encode()).hexdigest()
    return json.dumps({"version": version, "sha256": checksum, "state": state}).encode()


def aside(file: StateFile) -> Path:
    return file.path.with_name("state.json.damaged")


class TestSaving:
    def test_what_is_saved_is_loaded(self, file: StateFile) -> None:
        """The file has decision, volumes and override."""
        file.save(something(), unmoved)
        assert something() == file.load(NOW)

    def test_a_stop_is_saved_and_loaded(self, file: StateFile) -> None:
        """With the line that it was computed under: the volume is only within its margin by now."""
        limit, line = MinAvailableBytes(100), MinAvailableBytes(50)
        rules = VolumeLimit(Rules(limit, 300.0, line), 1.0)
        stopping = replace(file, rules=rules.rules)
        memory = Memory()
        for at, available in ((NOW - 1.0, 50), (NOW, 55)):
            memory = rules.fold(memory, whole(at, [reading(1, at, {"/d": available})]))
        stopping.save(PersistedState(memory, 0.0, Source.OBSERVATION, NOW), unmoved)
        loaded = stopping.load(NOW)
        assert isinstance(loaded, PersistedState)
        assert loaded.memory.computed is not None
        assert [55] == [each.volume.available_bytes for each in loaded.memory.computed.at_stop_line]

    def test_without_a_stop_line_earlier_versions_can_read_it(self, file: StateFile) -> None:
        """They refuse what they don't know, so it is not there."""
        file.save(something(), unmoved)
        state = json.loads(file.path.read_bytes())["state"]
        assert PLAIN.keys() == state.keys()
        assert {"factor", "computed_at", "violations"} == state["computed"].keys()

    def test_a_file_of_an_earlier_version_is_judged_by_the_stop_line_of_now(
        self, file: StateFile
    ) -> None:
        """It has nothing of a stop; the volume of 5 bytes that it has is at the line."""
        file.save(something(), unmoved)
        stopping = replace(file, rules=replace(file.rules, stop_line=MinAvailableBytes(5)))
        loaded = stopping.load(NOW)
        assert isinstance(loaded, PersistedState)
        assert loaded.memory.computed is not None
        assert [5] == [each.volume.available_bytes for each in loaded.memory.computed.at_stop_line]

    def test_nobody_else_may_read_it(self, file: StateFile) -> None:
        """It has log dirs and addresses, and an operator's words."""
        file.save(something(), unmoved)
        assert 0o600 == stat.S_IMODE(file.path.stat().st_mode)

    def test_it_is_synced_before_it_takes_the_place_and_its_folder_after(
        self, file: StateFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without the first a power cut leaves an empty file, without the second the old one."""
        steps: list[str] = []
        fsync, replace = os.fsync, Path.replace

        def note_fsync(handle: int) -> None:
            steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
            fsync(handle)

        def note_replace(path: Path, target: Path) -> Path:
            steps.append("rename")
            return replace(path, target)

        monkeypatch.setattr(os, "fsync", note_fsync)
        monkeypatch.setattr(Path, "replace", note_replace)
        file.save(something(), unmoved)
        assert ["file", "rename", "folder"] == steps

    @pytest.mark.parametrize(("owner", "step"), [(os, "fsync"), (Path, "replace")])
    def test_what_is_cut_off_before_the_rename_leaves_the_old_file(
        self, file: StateFile, monkeypatch: pytest.MonkeyPatch, owner: object, step: str
    ) -> None:
        """It is whole, and nothing is left beside it."""
        file.save(something(), unmoved)
        before = file.path.read_bytes()

        def fails(*_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patch:
            patch.setattr(owner, step, fails)
            with pytest.raises(OSError, match="Input/output error"):
                file.save(PersistedState(Memory(), 1.0, Source.FALLBACK, 0), unmoved)
        assert before == file.path.read_bytes()
        assert [file.path] == list(file.path.parent.iterdir())

    def test_a_link_stays_and_its_target_is_replaced(self, file: StateFile, tmp_path: Path) -> None:
        """As of a file on a persistent volume: a restart in a new container reads that file."""
        (tmp_path / "volume").mkdir()
        target = tmp_path / "volume" / "kept.json"
        file.path.symlink_to(target)
        file.save(something(), unmoved)
        assert file.path.is_symlink()
        assert something() == StateFile(target, RULES).load(NOW)
        target.write_bytes(b"torn")
        loaded = file.load(NOW)
        assert isinstance(loaded, Damaged)
        assert f"it was set aside as {target}.damaged" in loaded.problem
        assert file.path.is_symlink()

    def test_what_a_crash_left_beside_it_is_not_read(self, file: StateFile) -> None:
        """Kill -9 comes between write and rename: the old file is the state, and the rest goes."""
        file.save(something(), unmoved)
        file.path.with_name(".state.json.new").write_bytes(b"half of a st")
        assert isinstance(file.load(NOW), PersistedState)
        file.save(something(), unmoved)
        assert [file.path] == list(file.path.parent.iterdir())

    def test_a_folder_that_is_gone_is_the_callers_error(self, tmp_path: Path) -> None:
        """It is an OSError, which the state writer reports."""
        with pytest.raises(FileNotFoundError):
            StateFile(tmp_path / "gone" / "state.json", RULES).save(something(), unmoved)


class TestLoading:
    def test_no_file_is_no_state(self, file: StateFile) -> None:
        """The first start is nothing to report."""
        assert file.load(NOW) is None

    def test_a_file_that_can_not_be_read_is_not_damaged(self, file: StateFile) -> None:
        """A loop of links, say, or without permission: it stays, because its content may be whole.

        Its disk may answer the next read, as NFS does after a stale handle.
        """
        file.path.symlink_to(file.path)
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            file.load(NOW)
        assert file.path.is_symlink()

    def test_a_damaged_file_that_can_not_be_renamed_is_reported_too(self, file: StateFile) -> None:
        """Something of the other name is there."""
        file.path.write_bytes(b"")
        aside(file).mkdir()
        loaded = file.load(NOW)
        assert isinstance(loaded, Damaged)
        assert loaded.problem.endswith("; it can't be set aside: Is a directory")

    def test_what_is_set_aside_is_as_it_was(self, file: StateFile) -> None:
        """Somebody may want to know what happened."""
        file.path.write_bytes(b"\x00\x01 what a torn page looks like")
        loaded = file.load(NOW)
        assert isinstance(loaded, Damaged)
        assert f"it was set aside as {aside(file)}" in loaded.problem
        assert "\n" not in loaded.problem
        assert b"\x00\x01 what a torn page looks like" == aside(file).read_bytes()
        assert file.load(NOW) is None

    @pytest.mark.parametrize(
        ("raw", "message"),
        [
            pytest.param(b"", "EOF", id="empty"),
            pytest.param(b"null", "should be an object", id="null"),
            pytest.param(b"[" * 100_000, "recursion limit", id="nested"),
            pytest.param(b'{"version": 1, "sha256": ""}', "state: Field required", id="stateless"),
            pytest.param(b"\xff\xfe\x00", "Invalid JSON", id="no text"),
            pytest.param(with_checksum(PLAIN, version=2), "version", id="a newer version"),
            pytest.param(with_checksum({**PLAIN, "mood": 1}), "mood", id="an unknown key"),
            pytest.param(with_checksum({**PLAIN, "source": "oracle"}), "source", id="source"),
            pytest.param(with_checksum({**PLAIN, "since": float("nan")}), "since", id="NaN"),
            pytest.param(with_checksum({**PLAIN, "brokers": [1]}), "brokers.0", id="brokers"),
            pytest.param(
                with_checksum({**PLAIN, "override": {"factor": 2.0}}), "override", id="override"
            ),
            pytest.param(
                with_checksum(PLAIN).replace(b'"since": 5.0', b'"since": 6.0'),
                "checksum does not match",
                id="changed by hand",
            ),
        ],
    )
    def test_what_can_not_be_used_is_set_aside_and_says_why(
        self, file: StateFile, raw: bytes, message: str
    ) -> None:
        """Each case is one kind of damage; the control reads the same file undamaged."""
        file.path.write_bytes(with_checksum(PLAIN))
        assert isinstance(file.load(NOW), PersistedState)
        file.path.write_bytes(raw)
        loaded = file.load(NOW)
        assert isinstance(loaded, Damaged)
        assert message in loaded.problem
        assert raw == aside(file).read_bytes()
        assert not file.path.exists()


class TestAnyDamage:
    """Damage is never an exception or another state: the file is set aside, or equal."""

    def is_safe(self, file: StateFile, raw: bytes, before: PersistedState) -> None:
        file.path.write_bytes(raw)
        after = file.load(NOW)
        if isinstance(after, Damaged):
            assert not file.path.exists()
        else:
            assert before == after

    def test_cut_off_at_any_length(
        self, file: StateFile, written: tuple[bytes, PersistedState]
    ) -> None:
        """A full disk may cut it without the rename; every seventh length is tried."""
        raw, before = written
        for length in range(0, len(raw), 7):
            file.path.write_bytes(raw[:length])
            assert isinstance(file.load(NOW), Damaged), length
        self.is_safe(file, raw, before)

    @pytest.mark.slow
    @settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(where=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
    def test_one_byte_changed_anywhere(
        self, file: StateFile, written: tuple[bytes, PersistedState], where: float, flip: int
    ) -> None:
        """A bad sector may change it."""
        raw, before = written
        damaged = bytearray(raw)
        damaged[int(where * len(raw))] ^= flip
        self.is_safe(file, bytes(damaged), before)

    @pytest.mark.slow
    @settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(start=st.floats(0, 1), size=st.integers(1, 600), by=st.sampled_from([b"", b"\0", b"9"]))
    def test_a_stretch_lost_or_overwritten(
        self,
        file: StateFile,
        written: tuple[bytes, PersistedState],
        start: float,
        size: int,
        by: bytes,
    ) -> None:
        """A file system may lose a block."""
        raw, before = written
        at = int(start * len(raw))
        self.is_safe(file, raw[:at] + by * size + raw[at + size :], before)
