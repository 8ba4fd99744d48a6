"""Quotas that are set and removed, counted in words."""

import pytest

from sidecar.cli.quotas.counts import are_done, quota_counts, to_do
from sidecar.quotas.entities import Entity
from sidecar.quotas.request_time.quota_plan import Change


@pytest.mark.parametrize(
    ("setting", "removing", "question", "message", "not_told"),
    [
        (1, 0, "Set 1 quota", "1 quota is set", "1 quota is not set"),
        (1200, 0, "Set 1,200 quotas", "1,200 quotas are set", "1,200 quotas are not set"),
        (0, 1, "Remove 1 quota", "1 quota is removed", "1 quota is not removed"),
        (0, 2, "Remove 2 quotas", "2 quotas are removed", "2 quotas are not removed"),
        (
            1,
            301,
            "Set 1 quota and remove 301",
            "1 quota is set and 301 are removed",
            "1 quota is not set and 301 are not removed",
        ),
        (
            300,
            1,
            "Set 300 quotas and remove 1",
            "300 quotas are set and 1 is removed",
            "300 quotas are not set and 1 is not removed",
        ),
    ],
)
def test_what_is_set_and_what_is_removed(
    setting: int, removing: int, question: str, message: str, not_told: str
) -> None:
    """Each is counted by itself, one of them in the singular."""
    changes = [
        Change(Entity(f"user {n}"), "request_percentage", 1.0, limit)
        for n, limit in enumerate([5.0] * setting + [None] * removing)
    ]
    assert question == to_do(changes)
    assert message == are_done(changes)
    assert not_told == are_done(changes, "not ")


def test_nothing_at_all() -> None:
    """Nothing is said of what was not done."""
    assert "" == are_done([])
    assert "0 quotas" == quota_counts(0)
