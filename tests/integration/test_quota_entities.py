"""Which quota a client is under, beside Kafka's own ClientQuotaManager: the same for any entities.

Each example is some quotas, set and removed in any order, with clients that are looked up between;
``QuotaEntities.java`` asks a manager that is new for each example.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sidecar.quotas.entities import DEFAULT, Default, Entity, Name, QuotaKey, Resolved, resolve
from tests.support.quota_traces import KafkaQuotas

EXAMPLES = 200
NO_QUOTA = float(2**63 - 1)
"""What the manager answers for a client without one."""
NAMES = ("ann", "bob", "a:b", "CN=a b*,O=\u00fc+%", "<default>", "%3Cdefault%3E")


@dataclass(frozen=True, slots=True)
class Set:
    """A quota is set; None: it is removed."""

    entity: Entity
    limit: float | None

    def line(self) -> str:
        """As the program reads it."""
        limit = "-" if self.limit is None else repr(self.limit)
        return f"set\t{_word(self.entity.user)}\t{_word(self.entity.client_id)}\t{limit}"


@dataclass(frozen=True, slots=True)
class Ask:
    """A client is looked up; its requests may have no client-id at all."""

    user: str
    client_id: str | None

    def line(self) -> str:
        """As the program reads it."""
        return f"ask\t{_word(self.user)}\t{_word(self.client_id)}"


def _word(name: Name) -> str:
    if name is None:
        return "-"
    return "default" if isinstance(name, Default) else f"={name}"


named = st.sampled_from(NAMES)
parts = st.one_of(st.none(), st.just(DEFAULT), named)
entities = (
    st.tuples(parts, parts)
    .filter(lambda both: both != (None, None))
    .map(lambda both: Entity(*both))
)
limits = st.one_of(st.none(), st.integers(1, 1000).map(float))
steps = st.one_of(
    st.builds(Set, entities, limits),
    st.builds(Ask, st.one_of(st.just(""), named), st.one_of(st.none(), st.just(""), named)),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kafka_quotas() -> AsyncIterator[KafkaQuotas]:
    with await KafkaQuotas.start("QuotaEntities") as running:
        yield running


def test_every_client_is_under_the_same_quota(kafka_quotas: KafkaQuotas) -> None:
    """Limit and sharers agree; all eight levels, none, and clients without a name come up."""
    levels: Counter[tuple[str, str]] = Counter()
    unnamed: Counter[str | None] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(steps, min_size=20, max_size=60))
    # The level that chance may leave out: a user and a client-id of one entity.
    @example([Set(Entity("ann", "bob"), 1.0), Ask("ann", "bob")])
    def compare(course: list[Set | Ask]) -> None:
        asked = [step for step in course if isinstance(step, Ask)]
        lines = "\n".join((*(step.line() for step in course), "end", ""))
        theirs = iter(kafka_quotas.ask(lines, len(asked)))
        quotas: dict[Entity, dict[str, float]] = {}
        for step in course:
            if isinstance(step, Ask):
                ours = resolve(quotas, QuotaKey.PRODUCE, step.user, step.client_id or "")
                _same(next(theirs), ours)
                levels[_level(ours)] += 1
                unnamed[step.client_id or repr(step.client_id)] += 1
            elif step.limit is None:
                quotas.pop(step.entity, None)
            else:
                quotas[step.entity] = {QuotaKey.PRODUCE: step.limit}

    compare()
    assert 9 == len(levels), levels
    assert {"None", "''"} <= set(unnamed)


def _same(theirs: str, ours: Resolved | None) -> None:
    limit, user_tag, client_tag = theirs.split("\t")
    if ours is None:
        assert NO_QUOTA == float(limit)
    else:
        assert (float(limit), user_tag, client_tag) == (ours.limit, *ours.tags)


def _level(ours: Resolved | None) -> tuple[str, str]:
    """The kinds of the entity's parts."""
    if ours is None:
        return ("no", "quota")
    user, client = (
        "none" if part is None else "default" if part is DEFAULT else "named"
        for part in (ours.entity.user, ours.entity.client_id)
    )
    return user, client
