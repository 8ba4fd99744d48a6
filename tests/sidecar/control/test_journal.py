"""The log's lines for each publication: their exact text and levels."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from sidecar.control.board import Board
from sidecar.control.journal import log_publication
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import BudgetThrottle, Override
from sidecar.throttle.readers import Enforcement, Refusals, Report
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.throttle.build import FakeClock, reading, whole, with_rules

FACTORS = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 0.5)

HEALTHY = (
    "throttle factor 1.0 (observation): every volume has more than 10 B available "
    "(1 volume, 1 broker)"
)
"""The decision's own reason."""

SLOW = Failure(FailureKind.TIMEOUT, "no answer within 2 s")
SLOWER = Failure(FailureKind.TIMEOUT, "no answer within 3 s")
REFUSED = Failure(FailureKind.CONNECT, "nothing listens on b1:9092")

Line = tuple[int, str]
Lines = Callable[[], list[Line]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Returns the lines since its last call."""
    caplog.set_level(logging.DEBUG, "sidecar.control.journal")

    def since() -> list[Line]:
        logged = [(record.levelno, record.getMessage()) for record in caplog.records]
        caplog.clear()
        return logged

    return since


@pytest.fixture
def clock() -> FakeClock:
    """The board's clock."""
    return FakeClock()


@pytest.fixture
def board(clock: FakeClock) -> Board:
    """A board without an observation."""
    return Board(FACTORS, clock, listeners=(log_publication,))


def loud(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line[0] > logging.DEBUG]


@pytest.mark.parametrize("enforcement", ["callback", "client-quotas"])
def test_each_change_of_what_brokers_may_let_through_is_one_line(
    board: Board, clock: FakeClock, lines: Lines, enforcement: Enforcement
) -> None:
    """It is a warning where that shrinks; the release says that it is whole again.

    Only the callback obeys it.
    """
    board.readers.enforcement = enforcement
    for second in range(40):
        clock.now = float(second)
        board.observe(whole(clock.now, [reading(1, clock.now, {"/d": 9 - second // 5})]))
    board.observe(whole(clock.now, [reading(1, clock.now, {"/d": 99})]))
    soon = (
        "a volume will soon be full at factor 0.0: brokers may let only 0.1 of their leak budget"
        " through, with longer pauses"
    )
    again = "brokers may let their whole leak budget through again"
    found = [line for line in loud(lines()) if "leak budget" in line[1]]
    said = [(logging.WARNING, soon), (logging.INFO, again)]
    assert found == (said if enforcement == "callback" else [])


class TestDecisions:
    def test_the_first_is_one_line(self, board: Board, lines: Lines) -> None:
        """The daemon says what it starts with."""
        log_publication(None, board.snapshot)
        expected = "throttle factor 0.5 (fallback): no observation yet"
        assert [(logging.INFO, expected)] == lines()

    def test_each_change_is_one_line_with_its_reason(self, board: Board, lines: Lines) -> None:
        """The volume is healthy, full, and freed again."""
        for at, available in enumerate((50, 10, 11)):
            board.observe(whole(at, [reading(1, at, {"/d": available})]))
        full = (
            "throttle factor 0.0 (observation): broker 1 /d has 10 B of 100 B available (10.0%),"
            " at or below the limit of 10 B"
        )
        logged = [(logging.INFO, HEALTHY), (logging.WARNING, full), (logging.INFO, HEALTHY)]
        assert logged == lines()

    def test_a_sidecar_that_only_observes_says_what_would_be(
        self, clock: FakeClock, lines: Lines
    ) -> None:
        """Nobody is throttled, so it is no warning; but a user's own throttle is one."""
        board = Board(replace(FACTORS, is_enforced=False), clock, listeners=(log_publication,))
        board.observe(whole(0, [reading(1, 0, {"/d": 10})]))
        (decided,) = lines()
        would = (
            "throttle factor 1.0 (shadow): only observed (SIDECAR_MODE=observe): the factor would "
            "be 0.0: broker 1 /d has 10 B of 100 B available (10.0%), at or below the limit of 10 B"
        )
        assert (logging.INFO, would) == decided
        board.throttle_users("producer_ids", {"bob": (60.0, "too many")})
        assert [(logging.WARNING, "user bob would be throttled: too many")] == loud(lines())
        board.throttle_users("producer_ids", {}, ["bob"])
        assert [(logging.INFO, "user bob would be no longer throttled")] == loud(lines())

    def test_another_violating_volume_is_a_change(self, board: Board, lines: Lines) -> None:
        """The factor stays 0.0, but for another reason."""
        board.observe(whole(0, [reading(1, 0, {"/d0": 10, "/d1": 50})]))
        lines()
        board.observe(whole(1, [reading(1, 1, {"/d0": 10, "/d1": 9})]))
        logged = lines()
        assert [logging.INFO] == [level for level, _ in logged]
        assert logged[0][1].startswith("throttle factor 0.0 (observation): broker 1 /d1 has 9 B")
        assert logged[0][1].endswith("; 2 volumes violate it")

    def test_a_stop_has_a_line_of_its_own(self, clock: FakeClock, lines: Lines) -> None:
        """A WARNING with the volumes when it begins, and a line when it ends, with why."""
        stopping = with_rules(FACTORS, stop_line=MinAvailableBytes(5))
        board = Board(stopping, clock, listeners=(log_publication,))
        board.observe(whole(0, [reading(1, 0, {"/a": 6, "/b": 6})]))
        assert [] == [line for line in lines() if "stop" in line[1]]
        board.observe(whole(1, [reading(1, 1, {"/a": 6, "/b": 5})]))
        decided, stopped = lines()
        assert logging.INFO == decided[0]
        assert decided[1].endswith("; 1 volume violates the stop line of 5 B")
        expected = "stop line reached by broker 1 /b: producers would be refused"
        assert (logging.WARNING, expected) == stopped
        board.observe(whole(2, [reading(1, 2, {"/a": 6, "/b": 4})]))
        assert [] == loud(lines())
        board.set_override(Override(0.0, "by hand", 0, 60))
        assert (logging.INFO, "stop line: no longer reached (override)") == lines()[1]

    @pytest.mark.parametrize(
        ("refusals", "expected"),
        [
            (Refusals(), "producers are refused"),
            (None, "producers are throttled, not refused"),
        ],
    )
    def test_a_stop_names_what_the_readers_can_do(
        self, clock: FakeClock, lines: Lines, refusals: Refusals | None, expected: str
    ) -> None:
        """Only a broker with the authorizer refuses."""
        stopping = with_rules(FACTORS, stop_line=MinAvailableBytes(5))
        board = Board(stopping, clock, listeners=(log_publication,))
        board.readers.record(Report(1, False, 0, refusals=refusals), None, 0.0)
        board.observe(whole(0, [reading(1, 0, {"/a": 5})]))
        assert f"stop line reached by broker 1 /a: {expected}" == lines()[1][1]

    def test_of_many_volumes_that_stop_three_are_named(
        self, clock: FakeClock, lines: Lines
    ) -> None:
        """The rest is counted."""
        stopping = with_rules(FACTORS, stop_line=MinAvailableBytes(5))
        board = Board(stopping, clock, listeners=(log_publication,))
        board.observe(whole(0, [reading(1, 0, {f"/{n}": 5 for n in range(5)})]))
        volumes = "broker 1 /0, broker 1 /1, broker 1 /2 and 2 more"
        expected = f"stop line reached by {volumes}: producers would be refused"
        assert (logging.WARNING, expected) == lines()[1]

    def test_an_override_is_reported_with_the_operators_words(
        self, board: Board, lines: Lines
    ) -> None:
        """It is set and cleared."""
        board.set_override(Override(0.25, "moving partitions", 0, 60))
        board.set_override(None)
        assert [
            (
                logging.INFO,
                "throttle factor 0.25 (override): set by an operator: moving partitions",
            ),
            (logging.WARNING, "throttle factor 0.5 (fallback): no observation yet"),
        ] == lines()

    def test_the_release_of_a_full_volume_is_a_warning(self, board: Board, lines: Lines) -> None:
        """Producers fill it now, by an operator's override."""
        board.observe(whole(0, [reading(1, 0, {"/d": 5})]))
        lines()
        board.set_override(Override(1.0, "by hand", 0, 60))
        assert [logging.WARNING] == [level for level, _ in lines()]

    def test_the_fallback_is_a_warning_whatever_its_factor(
        self, board: Board, clock: FakeClock, lines: Lines
    ) -> None:
        """Here it raises the factor, and says that nobody sees the cluster."""
        board.observe(whole(0, [reading(1, 0, {"/d": 5})]))
        lines()
        clock.now = 301.0
        board.update(lambda memory: memory)
        ((level, text),) = lines()
        assert logging.WARNING == level
        assert text.startswith("throttle factor 0.5 (fallback)")

    def test_a_throttle_that_a_restart_finds_is_a_warning(self, board: Board, lines: Lines) -> None:
        """The other first decisions are not."""
        board.observe(whole(0, [reading(1, 0, {"/d": 5})]))
        lines()
        log_publication(None, board.snapshot)
        assert [logging.WARNING] == [level for level, _ in lines()]

    def test_a_poll_that_changes_nothing_is_said_at_debug_only(
        self, board: Board, lines: Lines
    ) -> None:
        """Bytes and validity moved, the decision did not."""
        board.observe(whole(0, [reading(1, 0, {"/d": 50})]))
        lines()
        board.observe(whole(1, [reading(1, 1, {"/d": 49})]))
        assert [(logging.DEBUG, HEALTHY)] == lines()

    def test_a_change_has_its_numbers_as_fields(
        self, board: Board, caplog: pytest.LogCaptureFixture
    ) -> None:
        """JSON lines can be searched by them."""
        caplog.set_level(logging.INFO, "sidecar.control.journal")
        board.observe(whole(0, [reading(1, 0, {"/d": 5})]))
        fields = {"factor": 0.0, "source": "observation", "generation": 2}
        assert fields.items() <= vars(caplog.records[0]).items()


class TestFailuresOfABroker:
    """Broker 1 answered before, so the factor stays what it is."""

    @pytest.fixture(autouse=True)
    def seen(self, board: Board, lines: Lines) -> None:
        board.observe(whole(0, [reading(1, 0, {"/d": 50})]))
        lines()

    def silent(self, board: Board, at: float, failure: Failure) -> None:
        board.observe(replace(whole(at, silent=[1]), answers={1: failure}))

    def test_the_same_kind_again_is_silence(self, board: Board, lines: Lines) -> None:
        """Other words for it are silent too: a broker that is down for a day is one line."""
        for at, failure in enumerate((SLOW, SLOW, SLOWER), start=1):
            self.silent(board, at, failure)
        assert 1 == len(loud(lines()))

    def test_another_kind_is_another_warning(self, board: Board, lines: Lines) -> None:
        """It hung, and then it was gone."""
        self.silent(board, 1, SLOW)
        self.silent(board, 2, REFUSED)
        assert [
            (logging.WARNING, "broker 1: timeout: no answer within 2 s"),
            (logging.WARNING, "broker 1: connect: nothing listens on b1:9092"),
        ] == loud(lines())

    def test_its_end_is_a_line(self, board: Board, lines: Lines) -> None:
        """Whoever read the warning knows that it is over; and the next is news again."""
        self.silent(board, 1, SLOW)
        board.observe(whole(2, [reading(1, 2, {"/d": 50})]))
        self.silent(board, 3, SLOW)
        assert [
            (logging.WARNING, "broker 1: timeout: no answer within 2 s"),
            (logging.INFO, "broker 1 works again; its last failure was timeout"),
            (logging.WARNING, "broker 1: timeout: no answer within 2 s"),
        ] == loud(lines())

    def test_each_broker_has_its_own(self, board: Board, lines: Lines) -> None:
        """Broker 2 fails while broker 1 fails already."""
        self.silent(board, 1, SLOW)
        board.observe(replace(whole(2, silent=[1, 2]), answers={1: SLOW, 2: REFUSED}))
        logged = [text for level, text in lines() if level == logging.WARNING]
        assert [
            "broker 1: timeout: no answer within 2 s",
            "broker 2: connect: nothing listens on b1:9092",
        ] == [text for text in logged if text.startswith("broker")]

    @pytest.mark.parametrize("available", [50, 5])
    def test_a_broker_that_is_fenced_while_it_fails_ends_it(
        self, board: Board, lines: Lines, available: int
    ) -> None:
        """It ends once; the broker did not come back, also if its violation is remembered."""
        board.observe(whole(1, [reading(1, 1, {"/d": available})]))
        self.silent(board, 2, SLOW)
        lines()
        for at in (3, 4):
            board.observe(whole(at, [reading(2, at, {"/d": 50})], fenced=[1]))
        assert "works again" not in str(logged := lines())
        assert 1 == logged.count(
            (
                logging.INFO,
                "broker 1 is no longer polled (fenced, removed or forgotten); its last failure was"
                " timeout",
            )
        )
        assert 1 == str(logged).count("broker 1 is")


class TestFailuresOfPolling:
    def test_it_begins_changes_and_ends(self, board: Board, lines: Lines) -> None:
        """Each is one line; the polls in between have none."""
        for failure in (REFUSED, REFUSED, SLOW, SLOWER):
            board.fail(failure)
        board.observe(whole(1, [reading(1, 1, {"/d": 50})]))
        assert [
            (logging.WARNING, "polling: connect: nothing listens on b1:9092"),
            (logging.WARNING, "polling: timeout: no answer within 2 s"),
            (logging.INFO, HEALTHY),
            (logging.INFO, "polling works again; its last failure was timeout"),
        ] == loud(lines())

    def test_an_override_while_polling_fails_says_nothing_of_it(
        self, board: Board, lines: Lines
    ) -> None:
        """What did not change is not reported with what did."""
        board.fail(REFUSED)
        lines()
        board.set_override(Override(0.25, "x", 0, 60))
        assert 1 == len(loud(lines()))

    def test_time_alone_says_nothing(self, board: Board, lines: Lines) -> None:
        """The board checked whether something expired, and nothing had."""
        board.fail(REFUSED)
        lines()
        board.update(lambda memory: memory)
        assert [] == loud(lines())


def test_another_cluster_is_a_warning(board: Board, clock: FakeClock, lines: Lines) -> None:
    """It takes over once the operator has forgotten all brokers of the known one."""
    board.observe(whole(0.0, [reading(1, 0.0, {"/d": 99})]))
    for clock.now, cluster_id in ((1.0, None), (2.0, "A"), (3.0, "B")):
        board.observe(whole(clock.now, [reading(1, clock.now, {"/d": 99})], cluster_id=cluster_id))
    found = [text for level, text in lines() if level == logging.WARNING]
    assert ["polling", "broker 1"] == [text.partition(": ")[0] for text in found]
    board.forget(1)
    clock.now = 4.0
    board.observe(whole(4.0, [reading(1, 4.0, {"/d": 99})], cluster_id="B"))
    expected = "the sidecar remembers no broker of cluster A, and from now on polls cluster B"
    assert (logging.WARNING, expected) in lines()


def test_who_is_throttled_is_reported_and_the_factor_for_all_is_not_repeated(
    board: Board, clock: FakeClock, lines: Lines
) -> None:
    """The begin is a warning, the end a line; a longer one is nothing above DEBUG."""
    board.readers.record(Report(1, False, 0), None, 0.0)
    board.observe(whole(0.0, [reading(1, 0.0, {"/d0": 50})]))
    lines()
    board.throttle_users("one", {"bob": (72.0, "2 ids too many")})
    assert [(logging.WARNING, "user bob is throttled: 2 ids too many")] == loud(lines())
    board.throttle_users("one", {"bob": (90.0, "2 ids too many")})
    assert [] == loud(lines())
    clock.now = 91.0
    board.update(lambda memory: memory)
    assert [(logging.INFO, "user bob is no longer throttled")] == loud(lines())


def test_without_a_reader_a_user_would_be_throttled(board: Board, lines: Lines) -> None:
    """No broker reads the decision, so nobody is throttled."""
    board.throttle_users("one", {"bob": (72.0, "2 ids too many")})
    assert [(logging.WARNING, "user bob would be throttled: 2 ids too many")] == loud(lines())


def test_a_step_of_a_budget_is_no_decision(board: Board, lines: Lines) -> None:
    """The watch of budgets has its own lines."""
    board.observe(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    lines()
    budget = {"etl": BudgetThrottle(0.5, ("t",), 0.0)}
    board.update(lambda memory: replace(memory, budgets=budget))
    assert [] == loud(lines())
