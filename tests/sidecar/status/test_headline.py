"""The sentence for a tired person, since when it is so, and until when."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sidecar.control.board import Board
from sidecar.status.headline import Headline, ToDo, Until, headline, in_short
from sidecar.status.moments import Moment, Now, span
from sidecar.throttle.decision import Disabled, VolumeLimit
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import BudgetThrottle, Contents, Override
from sidecar.throttle.readers import ReaderCounts
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules
from sidecar.volumes import Failure, FailureKind, Observation
from tests.sidecar.throttle.build import LONG_MAX, FakeClock, reading, whole

GB = 10**9
LIMIT = MinAvailableBytes(10 * GB)
VALIDITY_S = 300.0
DAY_S = 86_400.0
READ = ReaderCounts(1, 1)


def wall(steady_s: float) -> float:
    """The epoch begins on 1 January 1970 at 00:00 UTC."""
    return steady_s


def free(broker_id: int, at: float, gigabytes: float) -> Observation:
    """A whole observation of one broker with one volume of 100 GB."""
    return whole(
        at, [reading(broker_id, at, {"/kafka/data": round(gigabytes * GB)}, total=100 * GB)]
    )


def head(
    observations: Sequence[Observation],
    *,
    limit: Limit = LIMIT,
    stop_line: Limit | None = None,
    override: Override | None = None,
    fallback: float = 1.0,
    now: float | None = None,
    failure: Failure | None = None,
    slope: SlopeRules | None = None,
    observes: bool = False,
    counts: ReaderCounts = READ,
) -> Headline:
    """The head of the page after these observations."""
    clock = FakeClock()
    rules = Rules(limit, VALIDITY_S, stop_line, slope)
    board = Board(VolumeLimit(rules, fallback, is_enforced=not observes), clock)
    for observation in observations:
        clock.now = observation.observed_at
        board.observe(observation)
    clock.now = clock.now if now is None else now
    if failure is not None:
        board.fail(failure)
    if override is not None:
        board.set_override(override)
    board.update(lambda memory: memory)
    return headline(board.snapshot, counts, Now(clock.now, wall))


def test_producers_are_throttled() -> None:
    """The sentence has the volume, what it has left, and the limit."""
    shown = head([free(2, 0.0, 50), free(2, 60.0, 8.1)], now=91.0)
    assert (
        "Producers are throttled: /kafka/data of broker 2 has 8.1 GB left, the limit is 10.0 GB."
    ) == shown.sentence
    assert ("stopped", "Throttled", 0.0) == (shown.tone, shown.word, shown.factor)
    assert Moment("1970-01-01T00:01:00Z", "00:01:00 UTC", "31 s ago") == shown.since


def test_a_violation_that_is_over_while_another_broker_does_not_answer() -> None:
    """What is to do is at the other brokers: the volume has room."""
    seen = [
        whole(at, [reading(2, at, {"/d": gigabytes * GB}, total=100 * GB)], silent=[1])
        for at, gigabytes in ((0.0, 8), (60.0, 50))
    ]
    shown = head(seen)
    assert (
        "Producers are throttled: /d of broker 2 had 8.0 GB left when the factor was computed (the "
        "volume has more space now, but a release needs readings of every broker), the limit is "
        "10.0 GB."
    ) == shown.sentence
    assert (ToDo("Make sure that the brokers report their volumes", "brokers"),) == shown.to_do


def test_a_factor_on_its_slope() -> None:
    """The sentence has what producers are slowed to, the volume, and both limits."""
    soft = SlopeRules(MinAvailableBytes(40 * GB))
    shown = head([free(2, 0.0, 50), free(2, 60.0, 25)], slope=soft)
    assert ("part", "Slowed") == (shown.tone, shown.word)
    assert f"Producers are slowed to {100 * shown.factor:.4g} % of their previous rate: " in (
        shown.sentence
    )
    assert "at or below the soft limit of 40.0 GB: the factor falls until the limit of 10.0 GB" in (
        shown.sentence
    )


def test_a_sidecar_that_only_observes() -> None:
    """Nobody is throttled, and the page says who would be, why, until when and what helps."""
    shown = head([free(2, 0.0, 50), free(2, 60.0, 8.1)], observes=True, now=91.0)
    assert (
        "Nobody is throttled: this sidecar is in observe mode (SIDECAR_MODE=observe). "
        "In enforce mode: "
        "producers are throttled: /kafka/data of broker 2 has 8.1 GB left, the limit is 10.0 GB."
    ) == shown.sentence
    assert ("part", "Observes: throttled", 1.0) == (shown.tone, shown.word, shown.factor)
    assert shown.to_do
    assert shown.until[0].text.startswith("Until every volume has more than 10.0 GB available")
    well = head([free(2, 0.0, 50)], observes=True)
    assert ("free", "Observes", ()) == (well.tone, well.word, well.to_do)
    blind = head([], observes=True, fallback=0.0)
    assert ("part", "Observes: throttled") == (blind.tone, blind.word)
    assert blind.reason == "no observation yet"


def test_several_volumes() -> None:
    """The one with the least left is named, the others are counted."""
    dirs = {"/a": 5 * GB, "/b": 4 * GB, "/c": 60 * GB}
    shown = head([whole(0.0, [reading(1, 0.0, dirs, total=100 * GB)])])
    assert (
        "Producers are throttled: /b of broker 1 has 4.0 GB left, the limit is 10.0 GB. "
        "2 volumes violate it."
    ) == shown.sentence


def test_nothing_is_admitted() -> None:
    """The sentence has the volume that is worst, and the stop line; an override ends it."""
    line = MinAvailableBytes(5 * GB)
    shown = head([free(2, 0.0, 4.9)], stop_line=line)
    assert (
        "Producers are refused: /kafka/data of broker 2 has 4.9 GB left, the stop line is 5.0 GB."
    ) == shown.sentence
    assert ("stopped", "Stopped", 0.0) == (shown.tone, shown.word, shown.factor)
    dirs = {"/a": 5 * GB, "/b": 4 * GB, "/c": 8 * GB}
    shown = head([whole(0.0, [reading(1, 0.0, dirs, total=100 * GB)])], stop_line=line)
    assert shown.sentence.endswith("the stop line is 5.0 GB. 2 volumes are affected.")
    above = head([free(2, 0.0, 5.1)], stop_line=line)
    assert "Throttled" == above.word
    assert "stop line" not in above.sentence
    by_hand = head([free(2, 0.0, 4)], stop_line=line, override=Override(0.0, "x", 0.0, 60.0))
    assert "Producers are throttled, by an override." == by_hand.sentence
    assert "Throttled" == by_hand.word
    several = [whole(0.0, [reading(1, 0.0, dirs, total=100 * GB)])]
    released = head(several, stop_line=line, override=Override(1.0, "x", 0.0, 60.0))
    assert released.sentence.endswith("the limit is 10.0 GB. 3 volumes violate it.")


def test_a_ratio() -> None:
    """It is shown in percent, and in bytes too."""
    shown = head([free(2, 0.0, 8.1)], limit=MinAvailableRatio(0.1))
    assert (
        "Producers are throttled: /kafka/data of broker 2 has 8.1% (8.1 GB) left, "
        "the limit is 10.0%."
    ) == shown.sentence


def test_a_broker_that_is_gone_throttles_them() -> None:
    """The reading is the last one before."""
    fenced = whole(60.0, [reading(1, 60.0, {"/d": 50 * GB}, total=100 * GB)], fenced=[2])
    shown = head([free(2, 0.0, 8.1), fenced])
    begins = "Producers are throttled: /kafka/data of broker 2 had 8.1 GB left"
    assert shown.sentence.startswith(begins)


def test_nobody_is_throttled() -> None:
    """It says when the next volume would reach its limit, or that none fills so fast."""
    shown = head([free(2, 0.0, 50)])
    assert "Nobody is throttled: every volume has more than 10.0 GB available." == shown.sentence
    text = "None fills so fast now that it would within ten years."
    never = Until(f"Until a volume reaches its limit. {text}")
    assert ("free", never) == (shown.tone, shown.until[0])
    filling = head([free(2, 0.0, 50), free(2, 10.0, 40)], now=20.0)
    assert Moment("1970-01-01T00:00:40Z", "00:00:40 UTC", "in 20 s") == filling.until[0].moment
    slowly = [
        whole(at, [reading(2, at, {"/d": left}, total=LONG_MAX)])
        for at, left in ((0.0, LONG_MAX - 1), (10.0, LONG_MAX - 10**7))
    ]
    assert never == head(slowly).until[0]


def test_until_when_producers_are_throttled() -> None:
    """It has a time only if every violating volume empties."""
    still = head([free(2, 0.0, 8), free(2, 10.0, 8)])
    assert Until("Until every volume has more than 10.0 GB available.") == still.until[0]
    emptying = head([free(2, 0.0, 7), free(2, 10.0, 8)], now=15.0)
    assert Moment("1970-01-01T00:00:30Z", "00:00:30 UTC", "in 15 s") == emptying.until[0].moment


@pytest.mark.parametrize("is_fenced", [True, False], ids=["fenced", "silent"])
def test_a_volume_that_is_not_read_has_no_end(is_fenced: bool) -> None:
    """Nobody knows whether it still empties, and by the last rate the end would be past."""
    other = [reading(1, 60.0, {"/d": 50 * GB}, total=100 * GB)]
    away = whole(60.0, other, silent=() if is_fenced else [2], fenced=[2] if is_fenced else ())
    shown = head([free(2, 0.0, 7), free(2, 10.0, 8), away])
    assert "had 8.0 GB left when last read" in shown.sentence
    assert Until("Until every volume has more than 10.0 GB available.") == shown.until[0]


@pytest.mark.parametrize("left_gb", [8, 20], ids=["full", "on the slope"])
def test_the_reading_of_a_broker_that_left_expires(left_gb: int) -> None:
    """It was unregistered: nobody has to forget it, and the page says until when it counts."""
    other = reading(1, 60.0, {"/d": 50 * GB}, total=100 * GB)
    fenced = whole(60.0, [other], fenced=[2])
    soft = SlopeRules(MinAvailableBytes(40 * GB))
    shown = head([free(2, 0.0, 50), free(2, 30.0, left_gb), fenced], slope=soft)
    assert "expire" not in shown.until[0].text
    gone = whole(120.0, [replace(other, read_at=120.0)])
    shown = head([free(2, 0.0, 50), free(2, 30.0, left_gb), fenced, gone], slope=soft)
    assert "when last read, and the broker is gone" in shown.sentence
    assert "until the volume is read again or forgotten" not in shown.sentence
    expire = "Until the last readings of brokers that have left the cluster expire, at about"
    assert Until(expire, Now(120.0, wall).moment(420.0)) == shown.until[0]
    later = whole(421.0, [replace(other, read_at=421.0)])
    shown = head([free(2, 0.0, 50), free(2, 30.0, left_gb), fenced, gone, later], slope=soft)
    assert "left the cluster" not in shown.until[0].text
    assert "broker 2" not in shown.sentence


def test_within_the_release_margin() -> None:
    """It says what a volume above the limit still lacks, and when it will have that."""
    margin = MinAvailableBytes(10 * GB, release_margin=5 * GB)
    shown = head([free(2, 0.0, 9), free(2, 10.0, 11)], limit=margin)
    assert (
        "Producers are throttled: /kafka/data of broker 2 has 11.0 GB left, not yet 5.0 GB above "
        "the limit of 10.0 GB."
    ) == shown.sentence
    text = "Until every volume that violates the limit has more than 15.0 GB available: at the rate"
    assert f"{text} at which they empty," == shown.until[0].text
    assert Moment("1970-01-01T00:00:30Z", "00:00:30 UTC", "in 20 s") == shown.until[0].moment


def test_within_the_margin_of_the_stop_line() -> None:
    """A volume above the stop line keeps brokers refusing until it is a tenth above it."""
    shown = head([free(2, 0.0, 5), free(2, 10.0, 5.4)], stop_line=MinAvailableBytes(5 * GB))
    assert "has 5.4 GB left, not yet a tenth above the stop line of 5.0 GB." in shown.sentence


def test_how_long_what_was_seen_counts() -> None:
    """The validity is shown as what it is: the end when nothing more can be seen."""
    shown = head([free(2, 0.0, 8)])
    assert "If no more readings come, the fallback applies after" == shown.until[1].text
    assert shown.until[1].moment is not None
    assert "in 5 min" == shown.until[1].moment.relative


@pytest.mark.parametrize(
    ("factor", "available", "sentence", "tone"),
    [
        (1.0, 50, "Nobody is throttled, by an override.", "free"),
        (
            1.0,
            8,
            "Nobody is throttled, by an override, although /kafka/data of broker 2 has 8.0 GB "
            "left, the limit is 10.0 GB.",
            "part",
        ),
        (0.25, 50, "Producers are slowed to 25 % of their quotas, by an override.", "part"),
        (0.0, 8, "Producers are throttled, by an override.", "stopped"),
    ],
)
def test_set_by_hand(factor: float, available: float, sentence: str, tone: str) -> None:
    """The same sentence says what it ignores, and does not sound as if all was well."""
    override = Override(factor, "a migration", 0.0, 2 * DAY_S)
    shown = head([free(2, 0.0, available)], override=override)
    assert (sentence, tone) == (shown.sentence, shown.tone)
    assert shown.reason.startswith("set by an operator: a migration")
    moment = Moment("1970-01-03T00:00:00Z", "00:00:00 UTC on 3 January 1970", "in 2 days")
    assert (Until("Until an operator ends the override, at the latest at", moment),) == shown.until


@pytest.mark.parametrize(
    ("fallback", "does", "tone"),
    [(1.0, "Nobody is throttled", "blind"), (0.0, "Producers are throttled", "stopped")],
)
def test_the_fallback(fallback: float, does: str, tone: str) -> None:
    """Nothing is seen yet, or any more; the reason is in the decision's words."""
    failure = Failure(FailureKind.CONNECT, "broker-0:9092: refused")
    first = head([], fallback=fallback, failure=failure)
    assert f"{does}, by the fallback: no volume has been read yet." == first.sentence
    assert "no observation yet: broker-0:9092: refused" == first.reason
    later = head([free(2, 0.0, 50)], fallback=fallback, now=301.0)
    assert f"{does}, by the fallback: the volumes can't be read any more." == later.sentence
    assert {tone} == {first.tone, later.tone}


def test_readings_that_are_old_are_told_as_old() -> None:
    """All polls fail, no broker answers, or one of them was never read."""
    refused = Failure(FailureKind.AUTHENTICATION, "the login was refused")
    shown = head([free(2, 0.0, 50)], failure=refused)
    assert (
        "Nobody is throttled: every volume had more than 10.0 GB available when last read, and "
        "the last poll failed: the login was refused."
    ) == shown.sentence
    silent = head([free(2, 0.0, 50), whole(60.0, [], silent=[2])])
    assert silent.sentence.endswith(" available when last read, and no broker answers.")
    one = [reading(1, 0.0, {"/d": 50 * GB}, total=100 * GB)]
    partly = head([whole(0.0, one, silent=[2])])
    assert (
        "Nobody is throttled, by the fallback: not every volume of the cluster is known."
    ) == partly.sentence
    both = [reading(n, 0.0, {"/d": 50 * GB}, total=100 * GB) for n in (1, 2)]
    later = [reading(1, 301.0, {"/d": 50 * GB}, total=100 * GB)]
    expired = head([whole(0.0, both), whole(301.0, later, silent=[2])], now=301.0)
    assert expired.sentence.endswith(", by the fallback: some volumes can't be read any more.")


@pytest.mark.parametrize(
    ("counts", "does", "word"),
    [
        (ReaderCounts(0, 0), "Nobody is throttled", "Not enforced"),
        (ReaderCounts(2, 2), "Nobody is throttled", "Nobody yet"),
        (ReaderCounts(2, 1), "Producers are throttled", "Throttled"),
    ],
)
def test_a_throttle_for_no_topic(counts: ReaderCounts, does: str, word: str) -> None:
    """It throttles nobody, except at a broker without the authorizer that sees topics."""
    clock = FakeClock()
    rules = Rules(LIMIT, VALIDITY_S)
    board = Board(VolumeLimit(rules, 1.0, is_of_volumes=True), clock)
    board.observe(free(2, 0.0, 50))
    none = {(2, "/kafka/data"): Contents(frozenset(), 0.0)}
    board.update(lambda memory: replace(memory, contents=none))
    clock.now = 1.0
    board.observe(free(2, 1.0, 8.1))
    assert () == board.snapshot.decision.topics
    shown = headline(board.snapshot, counts, Now(clock.now, wall))
    assert shown.sentence.startswith(f"{does}: /kafka/data of broker 2 has 8.1 GB left")
    assert word == shown.word
    assert shown.sentence.endswith(
        "the limit is 10.0 GB." if counts.authorizers == 1 else "; no topic is known there."
    )
    assert "throttle nobody" == in_short(board.snapshot.decision)


@pytest.mark.parametrize(
    ("topics", "counts", "does"),
    [
        ({"orders"}, ReaderCounts(2, 2), "Producers of 1 topic are throttled"),
        ({"orders", "clicks"}, ReaderCounts(2, 2), "Producers of 2 topics are throttled"),
        # By client quotas everyone may have to be, and their number follows.
        ({"orders"}, ReaderCounts(0, 0, "client-quotas", 1), "Producers are throttled"),
        ({"orders", "clicks"}, ReaderCounts(2, 1), "Producers are throttled"),
    ],
)
def test_a_throttle_for_some_topics(topics: set[str], counts: ReaderCounts, does: str) -> None:
    """Others write on, unless a broker has no authorizer: it throttles everyone."""
    clock = FakeClock()
    board = Board(VolumeLimit(Rules(LIMIT, VALIDITY_S), 1.0, is_of_volumes=True), clock)
    contents = {(2, "/kafka/data"): Contents(frozenset(topics), 0.0)}
    board.update(lambda memory: replace(memory, contents=contents))
    board.observe(free(2, 0.0, 8.1))
    assert len(topics) == len(board.snapshot.decision.topics or ())
    shown = headline(board.snapshot, counts, Now(clock.now, wall))
    assert shown.sentence.startswith(f"{does}: /kafka/data of broker 2 has 8.1 GB left")


def test_a_volume_that_is_not_read_holds_the_slope() -> None:
    """The page names its broker, and says how it is forgotten if that does not come back."""
    clock = FakeClock()
    soft = SlopeRules(MinAvailableBytes(40 * GB))
    board = Board(VolumeLimit(Rules(LIMIT, VALIDITY_S, slope=soft), 1.0), clock)
    other = reading(1, 10.0, {"/d": 90 * GB}, total=100 * GB)

    def shown(then: Observation) -> Headline:
        clock.now = then.observed_at
        board.observe(then)
        return headline(board.snapshot, READ, Now(clock.now, wall))

    both = [replace(other, read_at=0.0), reading(2, 0.0, {"/e f": 12 * GB}, total=100 * GB)]
    assert () == shown(whole(0.0, both)).to_do
    silent = shown(whole(10.0, [other], silent=[2])).to_do
    check = "Check broker 2: the last reading of its /e f slows producers"
    assert (ToDo(check, "brokers"),) == silent
    offline = reading(2, 20.0, offline=["/e f"])
    forget = f"{check}. If it does not come back: throttle-sidecar forget 2"
    now_offline = shown(whole(20.0, [replace(other, read_at=20.0), offline])).to_do
    assert (ToDo(f"{forget} --log-dir '/e f'", "brokers"),) == now_offline
    fenced = shown(whole(30.0, [replace(other, read_at=30.0)], fenced=[2]))
    assert f"{check}. If it does not come back: throttle-sidecar forget 2" in fenced.to_do[0].text
    assert "Until the volume is read again, or an operator forgets it." == fenced.until[0].text


def test_what_to_do() -> None:
    """It names the page's section: the largest topics, or the brokers where these are unknown."""
    silent = whole(60.0, [reading(1, 60.0, {"/d": 50 * GB}, total=100 * GB)], silent=[2])
    failure = Failure(FailureKind.CONNECT, "broker-0:9092: refused")
    by_hand = Override(1.0, "a migration", 0.0, 100.0)
    shown = [
        head([free(2, 0.0, 50)]),
        head([free(2, 0.0, 8)]),
        head([free(2, 0.0, 8)], override=by_hand),
        head([free(2, 0.0, 8), silent]),
        head([], failure=failure),
    ]
    sections = [[it.section for it in each.to_do] for each in shown]
    assert [[], ["contents-1"], ["contents-1"], ["brokers"], ["brokers"]] == sections


def test_a_broker_without_all_sizes_answers() -> None:
    """What helps against a full volume is the same beside a log dir without sizes."""

    def beside(at: float, gigabytes: int) -> Observation:
        seen = {"/e": gigabytes * GB}
        return whole(at, [reading(1, at, seen, total=100 * GB, unreadable=["/d"])])

    both = whole(0.0, [reading(1, 0.0, {"/d": 50 * GB, "/e": 50 * GB}, total=100 * GB)])
    full = head([both, beside(60.0, 8)])
    assert "/e of broker 1 has 8.0 GB left, the limit is 10.0 GB." in full.sentence
    assert ["contents-1"] == [each.section for each in full.to_do]
    expired = head([both, beside(301.0, 50)])
    assert expired.sentence.endswith(", by the fallback: some volumes can't be read any more.")


def test_disabled() -> None:
    """Nothing is polled."""
    board = Board(Disabled(), FakeClock())
    shown = headline(board.snapshot, READ, Now(0.0, wall))
    assert shown.sentence.startswith("Nobody is throttled: this sidecar is disabled")


def test_users_who_are_throttled_besides() -> None:
    """The sentence counts them, and does not sound as if nobody were throttled."""
    board = Board(VolumeLimit(Rules(LIMIT, VALIDITY_S), 1.0), FakeClock())
    board.observe(free(2, 0.0, 50))
    board.throttle_users("one", {"etl": (100.0, "why")})
    shown = headline(board.snapshot, READ, Now(0.0, wall))
    assert shown.sentence.endswith(" In addition, 1 single user is throttled.")
    assert "part" == shown.tone


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (7199.0, "119 min"),
        (7500.0, "2 h 5 min"),
        (7200.0, "2 h"),
        (2 * DAY_S, "2 days"),
        (1234 * DAY_S, "1,234 days"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    """They have one or two units, as people say them."""
    assert text == span(seconds)


def test_client_quotas_throttle_only_what_is_lowered() -> None:
    """No quota is lowered yet, two are, and after the release one is not restored yet."""
    full = [free(2, 0.0, 50), free(2, 60.0, 8.1)]
    none, two = (ReaderCounts(0, 0, "client-quotas", count) for count in (0, 2))
    why = "/kafka/data of broker 2 has 8.1 GB left, the limit is 10.0 GB."
    shown = head(full, counts=none)
    assert (
        "No client quota is lowered now, so nobody is throttled. Once quotas are lowered, "
        f"producers would be throttled: {why}"
    ) == shown.sentence
    assert "Not enforced" == shown.word
    assert ["contents-1"] == [each.section for each in shown.to_do]
    shown = head(full, counts=two)
    applies = "It applies to clients of 2 produce quotas, which are lowered."
    assert f"Producers are throttled: {why} {applies}" == shown.sentence
    assert "Throttled" == shown.word
    # Client quotas refuse nobody, at the stop line either.
    at_stop_line = head(full, counts=two, stop_line=MinAvailableBytes(9 * GB))
    assert at_stop_line.sentence.startswith("Producers are throttled: ")
    released = head([*full, free(2, 120.0, 50)], counts=ReaderCounts(0, 0, "client-quotas", 1))
    assert released.sentence.endswith(" 1 produce quota still rises to its original.")
    near = "/kafka/data of broker 2 has 40.0 GB above it and fills by 1.0 GB a second"
    early = head(full[:1], counts=replace(two, near=near))
    assert f"2 produce quotas are lowered before the limit is reached: {near}." == early.sentence
    assert "Slowed" == early.word
    slowed = head([], counts=replace(two, near=near), fallback=0.5)
    assert slowed.sentence.endswith(f" Some are lower, so that no limit is reached: {near}.")


def test_quotas_that_a_budget_lowers_are_no_throttle_for_all() -> None:
    """The volume has space, and they do not rise."""
    board = Board(VolumeLimit(Rules(LIMIT, VALIDITY_S), 1.0), FakeClock())
    board.observe(free(2, 0.0, 50))
    past = {"etl": BudgetThrottle(0.0, ("t",), 0.0, ("loader",))}
    board.update(lambda memory: replace(memory, budgets=past))
    counts = ReaderCounts(0, 0, "client-quotas", 1)
    shown = headline(board.snapshot, counts, Now(0.0, wall))
    assert shown.sentence.endswith(" 1 produce quota is lowered for storage budgets.")


@pytest.mark.parametrize(
    ("counts", "does", "word"),
    [
        (READ, "are slowed or refused.", "Some throttled"),
        (
            ReaderCounts(1, 0),
            "would be slowed or refused if the brokers had the authorizer.",
            "Not throttled",
        ),
        (ReaderCounts(0, 0), "would be slowed or refused.", "Not enforced"),
    ],
    ids=["an authorizer", "none", "no reader"],
)
def test_owners_past_their_storage_budgets(counts: ReaderCounts, does: str, word: str) -> None:
    """The page does not sound as if nobody were throttled while a budget throttles."""
    board = Board(VolumeLimit(Rules(LIMIT, VALIDITY_S), 1.0), FakeClock())
    board.observe(free(2, 0.0, 50))
    past = {"etl": BudgetThrottle(0.0, ("t",), 0.0), "web": BudgetThrottle(0.5, ("u",), 0.0)}
    board.update(lambda memory: replace(memory, budgets=past))
    shown = headline(board.snapshot, counts, Now(0.0, wall))
    assert shown.sentence.endswith(
        f" In addition, clients that write to the topics of 2 owners past storage budgets {does}"
    )
    assert word == shown.word
    assert ("KafkaThrottleCallbackSilent" in shown.runbooks) == (counts.readers == 0)


def test_without_an_enforcement_nobody_is_throttled() -> None:
    """The page says by which setting, and tells nobody to install a callback."""
    shown = head([free(2, 0.0, 8.1)], counts=ReaderCounts(0, 0, "none"))
    assert shown.sentence.startswith("SIDECAR_ENFORCEMENT=none: this sidecar throttles nobody. ")
    assert ["contents-1"] == [each.section for each in shown.to_do]
