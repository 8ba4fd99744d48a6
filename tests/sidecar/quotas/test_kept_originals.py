"""Originals that are kept as the quotas of names that no client has."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.kept_originals import (
    Kept,
    is_record,
    originals_in,
    record_of,
    records_of,
    with_originals,
)

KEY = "producer_byte_rate"
ALICE, DEFAULT_CLIENT = Entity("alice"), Entity(client_id=DEFAULT)

NAMES = st.one_of(st.just(DEFAULT), st.text(min_size=1, max_size=30))
ENTITIES = st.one_of(
    st.builds(Entity, NAMES, st.none() | NAMES), st.builds(Entity, st.none(), NAMES)
)
KEPT = st.one_of(
    st.integers(1, 2**53).map(float).map(lambda value: Kept(value, value)),
    st.integers(1, 2**53).map(float).map(lambda base: Kept(None, base)),
)


def test_the_names_are_those_of_the_docs() -> None:
    """A person restores by them."""
    pair = Entity("alice", "etl")
    assert (Entity("throttle-sidecar.before:alice"), 1e7) == record_of(ALICE, Kept(1e7, 1e7))
    assert Entity("throttle-sidecar.before:alice", "etl") == record_of(pair, Kept(1.0, 1.0))[0]
    expected = Entity(client_id="throttle-sidecar.without-default"), 3e6
    assert expected == record_of(DEFAULT_CLIENT, Kept(None, 3e6))


@given(st.dictionaries(ENTITIES, KEPT, max_size=5))
def test_what_is_kept_is_found(kept: dict[Entity, Kept]) -> None:
    """Whatever the names are; each record is an entity of the same kind."""
    records = dict(record_of(entity, each) for entity, each in kept.items())
    assert kept == originals_in({record: {KEY: value} for record, value in records.items()})
    for entity in kept:
        for record in records_of(entity):
            assert is_record(record)
            assert entity.parts().keys() == record.parts().keys()


def test_whoever_compares_quotas_sees_the_originals() -> None:
    """Neither what is lowered now nor the records; a quota that was not there is not shown."""
    kept = {ALICE: Kept(1e7, 1e7), DEFAULT_CLIENT: Kept(None, 3e6)}
    lowered = {
        ALICE: {KEY: 8559249.0, "request_percentage": 5.0},
        DEFAULT_CLIENT: {KEY: 6e6},
        Entity("bob"): {KEY: 1.0},
    }
    records = {
        record: {KEY: value} for record, value in (record_of(*each) for each in kept.items())
    }
    expected = {ALICE: {KEY: 1e7, "request_percentage": 5.0}, Entity("bob"): {KEY: 1.0}}
    assert expected == with_originals({**lowered, **records})
    assert expected == with_originals(expected)
