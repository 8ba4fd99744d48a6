"""What a throttle of one volume leaves free is in the docs as it is simulated."""

from pathlib import Path

import pytest

from tests.simulation.scope_share import share_left_free, table


@pytest.mark.rare
def test_the_table_is_in_the_docs() -> None:
    """Number by number."""
    assert table() in Path("docs/how-much-and-whom.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_topic_of_all_brokers_leaves_nothing() -> None:
    """One of 98 partitions has a replica on each of 100 brokers; one of 48 on half of them."""
    assert 0.0 == share_left_free(98, 1)
    assert 0.5 == round(share_left_free(48, 1), 1)
