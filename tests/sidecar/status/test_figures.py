"""The page has computed figures: times, bars, rates, changes, sizes."""

from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.status.outline import Outline, outline
from tests.sidecar.throttle.build import reading, whole


def filling() -> FakeSidecar:
    """A volume that reaches the limit within 30 s, one that empties, and one that does neither."""
    sidecar = FakeSidecar()
    for now, left in ((0.0, 50), (15.0, 30), (30.0, 10)):
        sidecar.clock.now = now
        free = {"/d1": left, "/d2": 50 + round(now)}
        sidecar.see(whole(now, [reading(1, now, free), reading(2, now, {"/e": 50})], fenced=[3]))
    return sidecar


async def test_since_when_and_until_when() -> None:
    """They have the clock and the span; an end is a condition, or a time too."""
    sidecar = filling()
    sidecar.clock.now = 40.0
    words = (await outline(sidecar)).words
    assert "Since22:13:50 UTC (10 s ago)" in words
    assert "How longUntil every volume has more than 10 B available." in words
    assert "22:18:50 UTC (in 4 min)" in words
    for now, left in ((60.0, 5), (80.0, 7)):
        sidecar.clock.now = now
        sidecar.see(whole(now, [reading(1, now, {"/d1": left})]))
    reported = (
        "How longUntil every volume has more than 10 B available: at the rate at which they empty, "
    )
    assert f"{reported}22:15:10 UTC (in 30 s)" in (await outline(sidecar)).words


async def test_the_reason_of_a_fallback() -> None:
    """It says why nothing is seen, and what that means."""
    sidecar = FakeSidecar()
    failure = Failure(FailureKind.CONNECT, "nobody listens")
    sidecar.board.fail(failure)
    assert "Whyno observation yet: nobody listens" in (await outline(sidecar)).words


def bars(page: Outline) -> list[tuple[str | None, str | None, float]]:
    """Each bar's words, how far it is used, and the middle of the limit's line."""
    reported = [attributes for tag, attributes in page.tags if tag == "svg"]
    kinds = {
        name: [at for tag, at in page.tags if at.get("class") == name] for name in ("used", "limit")
    }
    assert [len(reported)] * 2 == [len(each) for each in kinds.values()]
    middles = [float(each["x"] or 0) + float(each["width"] or 0) / 2 for each in kinds["limit"]]
    used = [each["width"] for each in kinds["used"]]
    return list(zip((each["aria-label"] for each in reported), used, middles, strict=True))


async def test_bars_with_the_limit_drawn() -> None:
    """A bar shows the used part, and the limit as a line; words say it to who can't see it."""
    assert [
        ("90.0 % used, the limit is at 90.0 %", "90.0", 90.0),
        ("50.0 % used, the limit is at 90.0 %", "50.0", 90.0),
        ("20.0 % used, the limit is at 90.0 %", "20.0", 90.0),
    ] == bars(await outline(filling()))


async def test_the_fill_rate_and_the_time_to_the_limit() -> None:
    """One volume fills, one does not, and one has reached its limit."""
    sidecar = FakeSidecar()
    for now, left in ((0.0, 70), (15.0, 55)):
        sidecar.clock.now = now
        sidecar.see(whole(now, [reading(1, now, {"/d1": left, "/d2": 40})]))
    words = (await outline(sidecar)).words
    assert "/d1 of broker 1 55 B of 100 B in 45 sfills by 1 B/s" in words
    assert "/d2 of broker 1 40 B of 100 B not foreseensteady" in words
    assert "10 B of 100 B reached" in (await outline(filling())).words


async def test_the_last_changes() -> None:
    """The newest is first, each with when, what and why."""
    words = (await outline(filling())).words
    full = "22:13:50 UTC (now)Throttle producers: broker 1 /d1 has 10 B of 100 B available"
    free = "22:13:20 UTC (30 s ago)Throttle nobody: every volume has more than 10 B"
    assert -1 < words.index(full) < words.index(free)


async def test_when_a_broker_was_last_seen() -> None:
    """One answered once; one that never did is in another test."""
    sidecar = filling()
    sidecar.clock.now = 60.0
    sidecar.see(whole(60.0, [reading(1, 60.0, {"/d1": 5})], silent=[2], fenced=[3]))
    sidecar.clock.now = 61.0
    assert "no answer within 2 s 22:13:50 UTC (31 s ago)" in (await outline(sidecar)).words
