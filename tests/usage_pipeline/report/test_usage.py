"""Usage over time."""

import re

import pytest

from tests.usage_pipeline.report.rows import usage
from usage_pipeline.report.usage import usage_section


@pytest.mark.parametrize(
    ("expected", "quota_type", "amount"),
    [("2 MB/s", "produce", 2e6), ("40 %", "request", 40.0), ("6,000 ids/h", "producer_ids", 2.0)],
)
def test_the_axis_has_rates(expected: str, quota_type: str, amount: float) -> None:
    """A bucket's usage is divided by its length; ids are by the hour, brokers are summed."""
    rows = [usage(second, "alice", amount, quota_type) for second in range(3600)]
    [plot] = re.findall(r"<svg.*?</svg>", usage_section(rows))
    labels = re.findall(r'text-anchor="end">([^<]+)<', plot)
    assert expected == [label for label in labels if ":" not in label][-1]


def test_one_tenant_without_a_line_is_one_other() -> None:
    """The plot doesn't say "1 others"."""
    rows = [usage(second, str(second), 1.0) for second in range(6)]
    page = usage_section(rows)
    assert (True, False) == (">1 other<" in page, "1 others" in page)
