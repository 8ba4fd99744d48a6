"""Sidecars that make room in a cluster in memory, whatever fails and whenever they are killed."""

import errno
import os
import threading
import time
from pathlib import Path

import msgspec
import pytest

from sidecar.control.board import Board
from sidecar.relief import journal, service
from sidecar.relief.journal import MOST, Entry, Journal
from sidecar.throttle.relief import BEYOND, MOST_IN_VAIN
from tests.sidecar.relief.scripted import (
    DECLARED,
    DOWN,
    LIMIT,
    SEGMENT,
    SETTLE_S,
    STEP,
    TOTAL,
    Killed,
    Sidecar,
    World,
    run,
    started,
)
from tests.support.examples import mostly_slow
from tests.support.partition_log import MB, Log

HOURS = float(os.environ.get("RELIEF_HOURS", "0.15"))
SEEDS = range(int(os.environ.get("RELIEF_SEEDS", "20")))
ALL = 1800.0


def check_journal(world: World, *sidecars: Sidecar) -> None:
    """Every deletion was begun in a journal, and every step has one end with what is true."""
    begun: dict[tuple[str, int], int] = {}
    for sidecar in sidecars:
        lines = list(sidecar.lines())
        begins = {line.step: line for line in lines if line.kind == "begin"}
        ends = [line for line in lines if line.kind == "end"]
        assert sorted(begins) == sorted(line.step for line in ends)
        for line in begins.values():
            assert sum(each.about_bytes for each in line.deletions) <= STEP + len(line.deletions)
            for each in line.deletions:
                key = (each.topic, each.partition)
                begun[key] = max(begun.get(key, 0), each.to_offset)
        for line in ends:
            for each in line.deletions:
                if not each.failure and not line.found:
                    assert (each.first_offset or 0) >= each.to_offset
    for key, offset in world.deleted.items():
        assert begun[key] >= offset


@pytest.mark.slow
async def test_no_volume_reaches_its_limit(tmp_path: Path) -> None:
    """21 MB/s for half an hour; without the sidecar, the fullest volume is there in two minutes."""
    world, sidecar = started(1, tmp_path)
    await run(world, ALL, sidecar)
    assert world.lowest > LIMIT
    assert world.deletions > 10
    assert 0 == world.logs["orders", 0].start
    check_journal(world, sidecar)
    logs = world.logs.values()
    deleted = sum(sum(log.sizes) - log.bytes_from(log.start) for log in logs)
    assert pytest.approx(deleted, rel=0.1) == sidecar.relief.deleted_bytes
    alone, _ = started(1, tmp_path)
    await run(alone, 200.0)
    assert alone.lowest <= LIMIT


@pytest.mark.parametrize("seed", mostly_slow(SEEDS, 1, 9))
async def test_no_fault_breaks_a_promise(tmp_path: Path, seed: int) -> None:
    """Kills at every step, lost answers, new leaders, retention, silent brokers, two sidecars.

    ``World`` checks each deletion. RELIEF_HOURS and RELIEF_SEEDS make it longer.
    """
    world, first = started(seed, tmp_path / "a", faults=True)
    second = Sidecar(world, tmp_path / "b")
    until = world.clock.now + 3600.0 * HOURS
    while world.clock.now < until:
        # The peers sometimes disagree about who is first.
        first.is_first, second.is_first = world.chance.choice([(True, False), (True, True)])
        await run(world, 60.0, first, second)
    # Let the last step be closed.
    world.faults, world.silent, world.groups_unknown, world.kill_in = False, frozenset(), "", None
    first.is_first = second.is_first = True
    await run(world, 3 * SETTLE_S, first, second)
    check_journal(world, first, second)
    assert first.kills + second.kills > 0
    assert world.deletions > 0


@pytest.mark.slow
async def test_a_line_that_the_disk_writes_late_has_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is not taken without its line, which is on disk all the same later."""
    append, is_back = journal._append, threading.Event()

    def late(path: Path, entry: Entry) -> None:
        is_back.wait()
        append(path, entry)

    monkeypatch.setattr(journal, "_append", late)
    monkeypatch.setattr(service, "_WRITE_S", 0.05)
    world, sidecar = started(1, tmp_path)
    while not writing():
        await run(world, 10.0, sidecar)
    assert 0 == world.deletions
    is_back.set()
    for each in writing():
        each.join(10.0)
    monkeypatch.setattr(service, "_WRITE_S", 10.0)
    await run(world, 200.0, sidecar)
    assert 0 < world.deletions
    check_journal(world, sidecar)


async def test_a_deletion_counts_before_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk became full in the step, or hangs: metrics tell of the deletion all the same."""
    append = journal._append

    def full(path: Path, entry: Entry) -> None:
        if entry.kind == "end":
            raise TimeoutError
        append(path, entry)

    monkeypatch.setattr(journal, "_append", full)
    world, sidecar = started(1, tmp_path)
    while not world.deletions:
        await run(world, 1.0, sidecar)
    assert world.deletions == sidecar.relief.deletions
    assert 0 < sidecar.relief.deleted_bytes
    assert "the journal can't be used: its disk did not answer" == sidecar.relief.failure


async def test_a_journal_without_space_leaves_the_volume_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No step is taken without its line. The alert and the page tell it, and the log does once."""

    def full(_path: Path, _entry: Entry) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal, "_append", full)
    world, sidecar = started(1, tmp_path)
    await run(world, 130.0, sidecar)
    assert 0 == world.deletions
    planned = sidecar.relief.planned
    expected = "the journal can't be used: [Errno 28] No space left on device"
    assert (True, (), expected) == (planned.is_short, planned.deletions, planned.why)
    assert [f"no room can be made: {expected}"] == caplog.messages


def writing() -> list[threading.Thread]:
    """The threads that write to a journal."""
    return [each for each in threading.enumerate() if each.name == "relief journal"]


@pytest.mark.slow
async def test_a_kill_at_any_moment_leaves_the_journal_true(tmp_path: Path) -> None:
    """Before, in and after each line and request of the first steps."""
    for moment in range(30):
        world, sidecar = started(7, tmp_path / str(moment))
        while not world.deletions and sidecar.relief.planned.room is None:
            await run(world, 1.0, sidecar)
        world.kill_in = moment
        await run(world, 3 * SETTLE_S, sidecar)
        assert 1 == sidecar.kills, moment
        check_journal(world, sidecar)


async def test_a_topic_that_was_made_again_says_nothing_of_an_earlier_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sidecar was killed after the deletion, and the new log begins at 0."""
    append, (world, sidecar) = journal._append, started(1, tmp_path)

    def killed(path: Path, entry: Entry) -> None:
        if entry.kind == "end" and not sidecar.kills:
            raise Killed
        append(path, entry)

    monkeypatch.setattr(journal, "_append", killed)
    while not sidecar.kills:
        await run(world, 1.0, sidecar)
    world.topic_id = b"new"
    for log in world.logs.values():
        log.start = 0
    await run(world, 2 * SETTLE_S, sidecar)
    (end,) = (line for line in sidecar.lines() if line.found)
    assert {None} == {each.first_offset for each in end.deletions}
    assert "was made again" in end.deletions[0].failure


@pytest.mark.slow
async def test_two_that_act_delete_no_more_than_is_needed(tmp_path: Path) -> None:
    """Each sees what the other has deleted, long before it is free."""
    world, first = started(3, tmp_path / "a")
    world.foreign[1] = 0
    second = Sidecar(world, tmp_path / "b")
    while not world.deletions:
        await run(world, 1.0, first, second)
    room = first.relief.planned.room
    assert room is not None
    await run(world, 12.0, first, second)
    logs = world.logs.values()
    deleted = sum(sum(log.sizes) - log.bytes_from(log.start) for log in logs)
    written = 12.0 * room.growth
    assert deleted <= room.ends_at(SETTLE_S) - room.available + written
    assert deleted > STEP


async def relieved(folder: Path) -> tuple[World, Sidecar]:
    """A relief of "debug" in one step, which is not free yet; nothing more is written."""
    world, sidecar = started(3, folder)
    sidecar.relief.step_bytes = 2000 * MB
    world.logs = {("orders", 0): Log(5 * MB, [1, 2, 3]), ("debug", 0): Log(5 * MB, [1, 2])}
    for second in range(125):
        world.logs["debug", 0].write(1000, SEGMENT, world.clock.now - 7200.0 + second)
    world.foreign = {1: TOTAL - 2500 * MB - 1300 * MB, 2: 0, 3: 0}
    while not world.deletions:
        await run(world, 1.0, sidecar)
    for log in world.logs.values():
        log.rate = 1.0
    assert world.available(1) < LIMIT + 1000 * MB
    return world, sidecar


def deleted(world: World) -> float:
    """What was deleted, bytes."""
    return sum(sum(log.sizes) - log.bytes_from(log.start) for log in world.logs.values())


async def test_what_was_deleted_counts_with_a_new_leader(tmp_path: Path) -> None:
    """Otherwise the same room would be made again."""
    world, sidecar = await relieved(tmp_path)
    before = deleted(world)
    world.logs["debug", 0].epoch += 1
    await run(world, 3 * SETTLE_S, sidecar)
    assert deleted(world) < before + 5 * SEGMENT


async def test_what_was_deleted_counts_while_its_topic_is_left_out(tmp_path: Path) -> None:
    """One answer of a broker is an error, and then a deletion of another partition failed."""
    world, sidecar = await relieved(tmp_path)
    before = deleted(world)
    world.left_out = {"debug": "ListOffsets returned error 6"}
    await run(world, 10.0, sidecar)
    world.left_out = {}
    await run(world, 10.0, sidecar)
    sidecar.relief._failed["debug"] = (world.clock.now + 3 * SETTLE_S, "no answer")
    world.logs["debug-2", 0] = Log(1.0, [1])
    await run(world, 3 * SETTLE_S, sidecar)
    assert deleted(world) < before + 5 * SEGMENT


async def test_what_was_deleted_counts_until_a_later_reading_shows_it(tmp_path: Path) -> None:
    """Volumes are read once a minute, so a reading may be older than the freeing."""
    world, sidecar = await relieved(tmp_path)
    before = deleted(world)
    sidecar.relief.interval_s = 60.0
    poll, polled = world.poll, world.clock.now

    def seldom(board: Board) -> None:
        nonlocal polled
        if world.clock.now >= polled + 60.0:
            polled = world.clock.now
            poll(board)

    world.poll = seldom  # type: ignore[method-assign]
    await run(world, 3 * SETTLE_S, sidecar)
    assert deleted(world) < before + 5 * SEGMENT


@pytest.mark.slow
async def test_what_was_written_to_a_compacted_topic_does_not_count(tmp_path: Path) -> None:
    """Its cleaner removes records in the middle; only what is written later is counted."""
    world, sidecar = started(7, tmp_path)
    log = Log(9 * MB, [1, 2])
    world.logs = {("orders", 0): Log(0.5 * MB, [1, 2, 3]), ("logs-a", 0): log}
    world.unsuitable = {"logs-a": "its cleanup.policy is compact"}
    await run(world, 300.0, sidecar)
    log.rate = 1.0
    for index in range(len(log.sizes)):
        log.sizes[index] //= 4
    for segment in log.segments:
        segment[1] //= 4
    assert "its cleanup.policy is compact" in sidecar.relief.planned.why
    world.unsuitable = {}
    world.foreign[1] += max(0, world.available(1) - 700 * MB)
    await run(world, 60.0, sidecar)
    assert 0 == world.deletions
    assert "200.0 MB were not seen being written" in sidecar.relief.planned.why


@pytest.mark.parametrize("changed", mostly_slow(["file", "peers", "brokers", "leaders"]))
async def test_a_change_while_the_journal_is_written_stops_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """A disk may take seconds; the line after the step names the change."""
    append, (world, sidecar) = journal._append, started(1, tmp_path)

    def changing(path: Path, entry: Entry) -> None:
        append(path, entry)
        if entry.kind != "begin":
            return
        if changed == "file":
            sidecar.relief.file.path.write_text(DECLARED.replace("debug", "nothing"))
        elif changed == "peers":
            sidecar.is_first = False
        elif changed == "leaders":
            for log in world.logs.values():
                log.epoch += 1
        else:
            world.silent = frozenset({2})
            world.poll(sidecar.board)

    monkeypatch.setattr(journal, "_append", changing)
    await run(world, 200.0, sidecar)
    assert 0 == world.deletions
    assert {} == world.deleted
    check_journal(world, sidecar)
    expected = {
        "file": f"{sidecar.relief.file.path} has just changed",
        "peers": "another sidecar acts",
        "brokers": "broker 2 did not report its volumes",
        "leaders": DOWN.message,
    }[changed]
    ends = [line for line in sidecar.lines() if line.kind == "end"]
    assert {expected} == {each.failure for line in ends for each in line.deletions}


async def test_lines_of_a_clock_that_was_ahead_do_not_count(tmp_path: Path) -> None:
    """A relief would otherwise seem to go on, or to be in vain, until that time."""
    world, sidecar = started(5, tmp_path)
    relief = sidecar.relief
    line = Entry("begin", "a-1", world.clock.now + 86_400.0, "A", 1, "/d", LIMIT)
    entries = [line, *[msgspec.structs.replace(line, kind="gain", gained=False)] * MOST_IN_VAIN]
    for entry in entries:
        await relief.journal.append(entry)
    relief._settle_s = SETTLE_S
    assert (frozenset(), False) == (relief._relieving(), relief._is_in_vain((1, "/d")))
    world.clock.now += 86_400.0
    found = relief._relieving(), relief._is_in_vain((1, "/d"))
    assert (frozenset({(1, "/d")}), True) == found


@pytest.mark.slow
async def test_a_topic_that_is_no_longer_declared_is_not_touched(tmp_path: Path) -> None:
    """Nor is any other, until the changed file was read and can be used."""
    world, sidecar = started(1, tmp_path)
    relief, path = sidecar.relief, sidecar.relief.file.path

    async def deletions() -> int:
        before = world.deletions
        await run(world, 100.0, sidecar)
        return world.deletions - before

    assert await deletions() > 0
    path.write_text(DECLARED.replace("logs*", "logs-b"))
    assert (0, f"{path} has just changed") == (await deletions(), relief.planned.why)
    for _ in range(2):
        relief.file.read_change()
    logs_a, logs_b = world.logs["logs-a", 0].start, world.logs["logs-b", 0].start
    assert await deletions() > 0
    assert logs_a == world.logs["logs-a", 0].start
    assert logs_b < world.logs["logs-b", 0].start
    path.write_text(DECLARED.replace("200MB", "200M"))
    for _ in range(2):
        relief.file.read_change()
    assert (0, relief.file.problem) == (await deletions(), relief.planned.why)
    assert "class 2: '200M' may mean" in relief.planned.why


async def test_a_sidecar_that_takes_over_watches_first(tmp_path: Path) -> None:
    """What its predecessor deleted may not be free yet."""
    world, first = started(3, tmp_path / "a")
    while not world.deletions:
        await run(world, 1.0, first)
    before = world.deletions
    second = Sidecar(world, tmp_path / "b")
    await run(world, SETTLE_S - 1.0, second)
    assert before == world.deletions
    assert second.relief.planned.why.startswith(
        "this sidecar watches since 30 s, and freeing takes"
    )


async def test_a_sidecar_that_no_longer_acts_shows_nothing_of_before(tmp_path: Path) -> None:
    """Neither a failure nor topics that it left out; the sidecar that acts shows its own."""
    world, sidecar = started(1, tmp_path)
    relief = sidecar.relief
    world.left_out = {"debug": "partition 0 has no leader"}
    await run(world, 20.0, sidecar)
    relief._note("no answer")
    assert ("no answer", world.left_out) == (relief.failure, relief.left_out)
    sidecar.is_first = False
    await run(world, 20.0, sidecar)
    assert ("another sidecar acts", "", {}) == (relief.planned.why, relief.failure, relief.left_out)


@pytest.mark.slow
async def test_what_makes_it_refuse(tmp_path: Path) -> None:
    """A silent broker, unknown groups, a group that does not read, and the journal's cluster."""
    world, sidecar = started(5, tmp_path)
    del world.logs["debug", 0]
    await run(world, SETTLE_S + 20.0, sidecar)
    world.silent = frozenset({3})
    await run(world, 60.0, sidecar)
    assert "broker 3 did not report its volumes" == sidecar.relief.planned.why
    world.silent, world.groups_unknown = frozenset(), "the groups are not known: x"
    world.group_sleeps_until = world.clock.now + ALL
    await run(world, 40.0, sidecar)
    before = world.logs["logs-a", 0].start
    await run(world, 60.0, sidecar)
    assert before == world.logs["logs-a", 0].start
    assert "the groups are not known: x" in sidecar.relief.planned.why
    world.groups_unknown = ""
    await run(world, 120.0, sidecar)
    assert "group etl has read no further" in sidecar.relief.planned.why
    assert sidecar.relief.planned.is_short
    assert world.logs["logs-a", 0].start <= world.committed["etl"]["logs-a", 0]


async def test_another_cluster_is_left_alone(tmp_path: Path) -> None:
    """The journal knows the cluster that it is of."""
    world, sidecar = started(5, tmp_path)
    while not world.deletions:
        await run(world, 1.0, sidecar)
    (path,) = tmp_path.glob("relief-*.jsonl")  # noqa: ASYNC240 - no other task waits
    path.write_text(path.read_text().replace('"cluster_id":"A"', '"cluster_id":"B"'))
    sidecar.start()
    before = world.deletions
    await run(world, 120.0, sidecar)
    assert before == world.deletions
    assert sidecar.relief.planned.why.startswith("the journal is of cluster B, and this is A")


@pytest.mark.slow
async def test_it_gives_up_a_volume_that_something_else_fills(tmp_path: Path) -> None:
    """Three reliefs without a gain, then none for an hour; the reason is told."""
    world, sidecar = started(5, tmp_path)
    sidecar.relief.step_bytes = 2 * SEGMENT
    await run(world, 80.0, sidecar)
    for log in world.logs.values():
        log.rate = 1000.0
    for left in range(LIMIT + 200 * MB, LIMIT, -MB):
        # A foreign file takes whatever is freed, and a little more.
        world.foreign[1] += max(0, world.available(1) - left)
        await run(world, 1.0, sidecar)
        if "something else fills it" in sidecar.relief.planned.why:
            break
    gains = [line.gained for line in sidecar.lines() if line.kind == "gain"]
    assert [False] * MOST_IN_VAIN == gains[-MOST_IN_VAIN:]
    assert "was relieved 3 times without gaining space" in sidecar.relief.planned.why
    before = world.deletions
    await run(world, 600.0, sidecar)
    assert before == world.deletions


async def test_without_a_declared_topic_nothing_is_examined(tmp_path: Path) -> None:
    """A volume fills, and no topic is declared."""
    world, sidecar = started(1, tmp_path)
    world.logs = {("orders", 0): world.logs["orders", 0]}
    world.logs["orders", 0].rate = 20 * MB
    await run(world, 130.0, sidecar)
    assert world.lowest < LIMIT
    assert 0 == world.deletions
    assert "" != sidecar.relief.planned.why


async def test_topics_that_cant_be_read_are_the_reason(tmp_path: Path) -> None:
    """None of the declared topics can be read: they are there all the same."""
    world, sidecar = started(1, tmp_path)
    world.left_out = dict.fromkeys(("debug", "logs-a", "logs-b"), "partition 0 has no leader")
    await run(world, 130.0, sidecar)
    expected = "nothing may go from /d of broker 1: debug: partition 0 has no leader; logs-a"
    assert sidecar.relief.planned.why.startswith(expected)


async def test_a_dry_run_deletes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its plan is logged once, and stays."""
    world, sidecar = started(1, tmp_path)
    sidecar.relief.mode = "dry-run"
    await run(world, 130.0, sidecar)
    assert 0 == world.deletions
    assert [] == list(sidecar.lines())
    assert sidecar.relief.planned.deletions
    (text,) = [text for text in caplog.messages if "would delete" in text]
    assert "of the oldest records in" in text


async def test_topics_beyond_the_most_partitions_are_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are left out with the reason, and logged again after a time without any."""
    world, sidecar = started(1, tmp_path)
    world.unsuitable = {"more": BEYOND}
    await run(world, 60.0, sidecar)
    assert {"more": BEYOND} == sidecar.relief.left_out
    world.unsuitable = {}
    await run(world, 20.0, sidecar)
    world.unsuitable = {"more": BEYOND}
    await run(world, 20.0, sidecar)
    logged = [text for text in caplog.messages if BEYOND in text and "such as" in text]
    assert [f"nothing is deleted from 1 declared topics, such as more: {BEYOND}"] * 2 == logged


def line(step: str, at: float) -> Entry:
    """A line before a step."""
    return Entry("begin", step, at, "A", 1, "/d", LIMIT)


def test_a_damaged_line_hides_no_other(tmp_path: Path) -> None:
    """Not JSON, zeros after a crash of the machine, a byte that is not UTF-8, and no date."""
    good = msgspec.json.encode(line("a-1", 1000.0))
    damaged = (
        good.replace(b"/d", b"/\xc3"),
        good.replace(b"begin", b"beg\xffn"),
        bytes(9),
        b"{",
        msgspec.json.encode(line("a-2", 1e300)),
        msgspec.json.encode(line("a-2", -1.0)),
    )
    path = tmp_path / journal._name(1000.0)
    for each in damaged:
        path.write_bytes(each + b"\n" + good + b"\n")
        found = Journal(tmp_path)
        found.load(1000.0)
        assert ["a-1"] == [entry.step for entry in found.open], each


def test_a_clock_that_is_or_was_ahead_hides_no_line(tmp_path: Path) -> None:
    """It removes no file, and lines of that time do not displace the ones of today."""
    now = 1_795_000_000.0
    today, later = tmp_path / journal._name(now), tmp_path / journal._name(now + 86_400.0)
    today.write_bytes(msgspec.json.encode(line("a-1", now)) + b"\n")
    found = Journal(tmp_path)
    found.load(now + 400 * 86_400.0)
    assert ["a-1"] == [entry.step for entry in found.open]
    of_later = msgspec.structs.replace(line("b-1", now + 86_400.0), kind="end")
    later.write_bytes((msgspec.json.encode(of_later) + b"\n") * MOST)
    found = Journal(tmp_path)
    found.load(now)
    assert ["a-1"] == [entry.step for entry in found.open]


def test_a_journal_that_is_read_again_has_each_line_once(tmp_path: Path) -> None:
    """Its disk failed in between. A step would otherwise get two ends."""
    lines = [line(f"a-{day}", 86_400.0 * day) for day in (1, 2)]
    first, second = (tmp_path / journal._name(each.at) for each in lines)
    first.write_bytes(msgspec.json.encode(lines[0]) + b"\n")
    second.mkdir()
    found = Journal(tmp_path)
    with pytest.raises(IsADirectoryError):
        found.load(2 * 86_400.0)
    second.rmdir()
    second.write_bytes(msgspec.json.encode(lines[1]) + b"\n")
    found.load(2 * 86_400.0)
    assert lines == found.open


def test_lines_older_than_90_days_are_removed(tmp_path: Path) -> None:
    """By the days in the names of the files."""
    _, sidecar = started(1, tmp_path)
    now = time.mktime((2026, 11, 28, 12, 0, 0, 0, 0, 0))
    for day in ("20260829", "20260831", "20261128"):
        (tmp_path / f"relief-{day}.jsonl").touch()
    sidecar.relief.journal.load(now)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert ["relief-20260831.jsonl", "relief-20261128.jsonl"] == left
