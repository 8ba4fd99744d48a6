"""Admission of mutations: whose bucket, what throttle time, who is muted, and bounds."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.admission import Admission
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.mutations.admissions import (
    AdmissionRequest,
    Algorithm,
    Judged,
    MutationAdmissions,
    Muted,
)
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket

KEY = "controller_mutation_rate"
HUNDRED = QuotaWindow(100, 1000)
"""The windows of KIP-599's example."""


def quotas(rates: Mapping[Entity, float]) -> dict[Entity, dict[str, float]]:
    return {entity: {KEY: rate, "producer_byte_rate": 1.0} for entity, rate in rates.items()}


def admissions(
    rates: Mapping[Entity, float],
    algorithm: Algorithm = "token-bucket",
    window: QuotaWindow = QuotaWindow(),  # noqa: B008 - a frozen value
    most: int = 100,
) -> MutationAdmissions:
    made = MutationAdmissions(algorithm, window, most)
    made.set_quotas(quotas(rates))
    return made


def asked(
    *amounts: int, user: str = "alice", client_id: str = "portal", **more: bool
) -> AdmissionRequest:
    return AdmissionRequest(user, client_id, amounts, **more)


def judged(answer: Judged | Muted) -> Judged:
    assert isinstance(answer, Judged)
    return answer


def accepted(answer: Judged | Muted) -> list[bool]:
    return [admission.accepted for admission in judged(answer).admissions]


ALICE = Entity("alice")


class TestThrottleTime:
    def test_the_module_s_example(self) -> None:
        """40 and 40 of a bucket of 55 are accepted; the next one waits for 25 at 5 a second."""
        answer = admissions({ALICE: 5.0}).admit(asked(40, 40, 1), 0)
        assert Judged(5000, (Admission(True, 0), Admission(True, 0), Admission(False, 5000))) == (
            answer
        )

    @pytest.mark.parametrize("algorithm", ["token-bucket", "burst-spreading"])
    def test_the_kip_s_example(self, algorithm: Algorithm) -> None:
        """At quota 5 and 100 samples 560 wait 12 s and are then admitted, by either algorithm."""
        mutations = admissions({ALICE: 5.0}, algorithm, HUNDRED)
        assert [True] == accepted(mutations.admit(asked(560), 1000))
        assert 12_000 == judged(mutations.admit(asked(1), 1000)).throttle_ms
        assert Muted(1) == mutations.admit(asked(1), 12_999)
        assert [True] == accepted(mutations.admit(asked(1), 13_000))

    def test_the_quota_itself(self) -> None:
        """All is used up exactly: the empty bucket accepts more, the rate does not."""
        bucket, rate = admissions({ALICE: 5.0}), admissions({ALICE: 5.0}, "burst-spreading")
        assert [True, True] == accepted(bucket.admit(asked(55, 1), 0))
        assert [True, False] == accepted(rate.admit(asked(55, 1), 0))

    def test_permissive_accepts_all_and_waits_for_the_last(self) -> None:
        """Each operation reports the wait after it; the request's wait is the longest of them."""
        answer = judged(admissions({ALICE: 5.0}).admit(asked(55, 5, 5, strict=False), 0))
        assert [True] * 3 == accepted(answer)
        assert [0, 1000, 2000] == [admission.throttle_ms for admission in answer.admissions]
        assert 2000 == answer.throttle_ms

    def test_validating_is_never_charged(self) -> None:
        """It is accepted whatever is left, and takes no token."""
        mutations = admissions({ALICE: 5.0})
        assert Judged(0, (Admission(True, 0),) * 2) == mutations.admit(
            asked(9999, 9999, validate_only=True), 0
        )
        assert [True, False] == accepted(mutations.admit(asked(56, 1), 0))

    def test_who_has_no_quota_is_never_throttled(self) -> None:
        """There is no quota, an infinite one, or one of 0, which no broker takes."""
        mutations = admissions({ALICE: 5.0, Entity("carol"): math.inf, Entity("dave"): 0.0})
        for user in ("bob", "carol", "dave"):
            for _ in range(2):
                answer = mutations.admit(asked(10**9, user=user), 0)
                assert Judged(0, (Admission(True, 0),)) == answer


class TestWhoseBucket:
    def test_the_most_specific_quota_applies(self) -> None:
        """A user's clients share the user's quota; a user with client-id has its own."""
        mutations = admissions({ALICE: 5.0, Entity("alice", "etl"): 1.0})
        assert [True] == accepted(mutations.admit(asked(60, client_id="a"), 0))
        assert [False] == accepted(mutations.admit(asked(1, client_id="b"), 0))
        assert [True, False] == accepted(mutations.admit(asked(12, 1, client_id="etl"), 0))

    def test_a_default_user_s_quota_is_for_each_alone(self) -> None:
        """What bob uses does not throttle carol."""
        mutations = admissions({Entity(DEFAULT): 5.0})
        assert [True] == accepted(mutations.admit(asked(60, user="bob"), 0))
        assert [False] == accepted(mutations.admit(asked(1, user="bob"), 0))
        assert [True] == accepted(mutations.admit(asked(1, user="carol"), 0))

    def test_a_client_id_s_quota_is_shared_by_users(self) -> None:
        """These are levels 7 and 8."""
        mutations = admissions({Entity(client_id=DEFAULT): 5.0})
        assert [True] == accepted(mutations.admit(asked(60, user="bob"), 0))
        assert [False] == accepted(mutations.admit(asked(1, user="carol"), 0))


class TestMuted:
    def test_who_comes_back_too_soon_is_reported_what_is_left(self) -> None:
        """It costs nothing, does not lengthen the wait, and applies to all its requests."""
        mutations = admissions({ALICE: 5.0})
        mutations.admit(asked(60, 1), 0)
        for now_ms in (0, 400, 999):
            assert Muted(1000 - now_ms) == mutations.admit(asked(9), now_ms)
            assert Muted(1000 - now_ms) == mutations.admit(asked(9, validate_only=True), now_ms)
        # At the end of the wait there are 0 tokens, which is enough.
        assert [True, False] == accepted(mutations.admit(asked(1, 1), 1000))

    def test_another_client_of_the_user_is_not_muted(self) -> None:
        """It has a connection of its own, but the same bucket throttles it."""
        mutations = admissions({ALICE: 5.0})
        mutations.admit(asked(60, 1), 0)
        answer = mutations.admit(asked(1, client_id="other"), 250)
        assert Judged(750, (Admission(False, 750),)) == answer

    def test_a_wait_below_half_a_millisecond_mutes_nobody(self) -> None:
        """Kafka rounds it: the request is rejected with a throttle time of 0."""
        mutations = admissions({ALICE: 10_000.0})
        mutations.admit(asked(110_004), 0)
        answer = mutations.admit(asked(1), 0)
        assert Judged(0, (Admission(False, 0),)) == answer
        assert [True] == accepted(mutations.admit(asked(1), 1))

    def test_a_wait_of_a_millisecond_mutes(self) -> None:
        """It is the shortest one that clients are told."""
        mutations = admissions({ALICE: 1000.0})
        assert 1 == judged(mutations.admit(asked(11_001, strict=False), 0)).throttle_ms
        assert Muted(1) == mutations.admit(asked(1), 0)


class TestQuotasThatChange:
    def test_a_new_rate_counts_from_the_last_use(self) -> None:
        """A debt of 25 takes 5 s at 5 a second and 1 s at 25, where the bucket is larger."""
        mutations = admissions({ALICE: 5.0})
        mutations.admit(asked(80), 0)
        mutations.set_quotas(quotas({ALICE: 25.0}))
        answer = mutations.admit(asked(1), 200)
        assert Judged(800, (Admission(False, 800),)) == answer
        # 11 s later it is full with the new burst of 275.
        assert [True, True, False] == accepted(mutations.admit(asked(275, 1, 1), 20_000))

    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            ({ALICE: 50.0}, Judged(1000, (Admission(False, 1000),))),
            ({}, Judged(0, (Admission(True, 0),))),
            ({Entity(client_id="portal"): 1.0}, Judged(0, (Admission(True, 0),))),
            ({ALICE: 5.0, Entity("bob"): 1.0}, Muted(19_000)),
            ({ALICE: 4.0}, Muted(19_000)),
        ],
        ids=["raised", "removed", "another bucket", "another user's", "lowered"],
    )
    def test_a_wait_lasts_as_long_as_its_quota(
        self, after: Mapping[Entity, float], expected: Judged | Muted
    ) -> None:
        """A debt of 100 takes 20 s; a second later the quota is another one."""
        mutations = admissions({ALICE: 5.0})
        assert 20_000 == judged(mutations.admit(asked(155, 1), 0)).throttle_ms
        mutations.set_quotas(quotas(after))
        assert expected == mutations.admit(asked(1), 1000)

    def test_a_quota_that_is_gone_throttles_nobody(self) -> None:
        """When a quota is set again, the bucket is full."""
        mutations = admissions({ALICE: 5.0})
        mutations.admit(asked(1000), 0)
        mutations.set_quotas(quotas({}))
        assert [True] == accepted(mutations.admit(asked(1000), 1))
        mutations.set_quotas(quotas({ALICE: 5.0}))
        assert [True, False] == accepted(mutations.admit(asked(56, 1), 2))

    def test_a_change_elsewhere_leaves_what_was_counted(self) -> None:
        """What changes is another user's quota, or another kind of quota."""
        mutations = admissions({ALICE: 5.0})
        mutations.admit(asked(80), 0)
        mutations.set_quotas(quotas({ALICE: 5.0, Entity("bob"): 1.0}))
        assert [False] == accepted(mutations.admit(asked(1), 0))

    @pytest.mark.parametrize(
        ("before", "after", "user", "client_id"),
        [
            (ALICE, Entity(DEFAULT), "alice", "portal"),
            (Entity("alice", "portal"), Entity(DEFAULT, DEFAULT), "alice", "portal"),
            (Entity(client_id=DEFAULT), Entity(client_id="portal"), "alice", "portal"),
            (ALICE, Entity(DEFAULT), "alice", ""),
        ],
    )
    def test_the_same_bucket_at_another_level(
        self, before: Entity, after: Entity, user: str, client_id: str
    ) -> None:
        """Those who shared it share it still, and what was counted stays."""
        mutations = admissions({before: 5.0})
        mutations.admit(asked(80, user=user, client_id=client_id), 0)
        mutations.set_quotas(quotas({after: 5.0}))
        assert [False] == accepted(mutations.admit(asked(1, user=user, client_id=client_id), 0))

    def test_another_level_is_another_bucket(self) -> None:
        """The user's own quota is removed, and the client-id's applies."""
        mutations = admissions({ALICE: 5.0, Entity(client_id="portal"): 5.0})
        mutations.admit(asked(80), 0)
        mutations.set_quotas(quotas({Entity(client_id="portal"): 5.0}))
        assert [True] == accepted(mutations.admit(asked(1), 0))


class TestBounds:
    def test_the_longest_unused_makes_room(self) -> None:
        """A third user's bucket takes the room of the first one's, and a third wait that of a's."""
        mutations = admissions({Entity(DEFAULT): 5.0}, most=2)
        now_ms = 1_000_000
        for user in ("a", "b"):
            mutations.admit(asked(60, 1, user=user), now_ms)
        assert [True] == accepted(mutations.admit(asked(60, user="c"), now_ms))
        assert "MutationAdmissions(2 buckets)" == repr(mutations)
        # That was the bucket of a, not its wait.
        assert isinstance(mutations.admit(asked(1, user="a"), now_ms), Muted)
        # The third wait is c's.
        mutations.admit(asked(1, user="c"), now_ms)
        assert [True] == accepted(mutations.admit(asked(1, user="a"), now_ms))

    def test_what_is_used_again_is_not_the_oldest(self) -> None:
        """The bucket that was unused for longer makes room."""
        mutations = admissions({Entity(DEFAULT): 5.0}, most=2)
        for user in ("a", "b", "a", "c"):
            mutations.admit(asked(30, user=user), 0)
        # The 60 of a overdrew its bucket of 55.
        assert [False] == accepted(mutations.admit(asked(1, user="a"), 0))

    def test_a_wait_that_is_over_takes_no_room(self) -> None:
        """A new one of the same client does not make room for itself."""
        mutations = admissions({Entity(DEFAULT): 5.0}, most=2)
        mutations.admit(asked(100, 1, user="b"), 0)
        mutations.admit(asked(60, 1, user="a"), 100)
        mutations.admit(asked(10, 1, user="a"), 1100)
        assert isinstance(mutations.admit(asked(1, user="b"), 1200), Muted)


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.lists(st.integers(1, 40), min_size=1, max_size=5)),
        max_size=50,
    ),
    st.sampled_from([0.5, 1.0, 5.0, 7.3]),
)
def test_never_more_than_the_quota_allows(steps: list[tuple[int, list[int]]], rate: float) -> None:
    """Admitted is at most the burst, the rate times the time, and one operation more."""
    mutations = admissions({ALICE: rate})
    alone = TokenBucket(rate, QuotaWindow(), 0)
    now_ms = 0
    admitted = largest = 0
    for passed_ms, amounts in steps:
        now_ms += passed_ms
        answer = mutations.admit(asked(*amounts), now_ms)
        if isinstance(answer, Muted):
            continue
        expected = [alone.admit(amount, now_ms, strict=True) for amount in amounts]
        assert expected == list(answer.admissions)
        admitted += sum(
            amount
            for amount, admission in zip(amounts, answer.admissions, strict=True)
            if admission.accepted
        )
        largest = max(largest, *amounts)
    assert admitted <= 11 * rate + rate * now_ms / 1000 + largest + 1e-6
