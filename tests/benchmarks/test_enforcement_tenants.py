"""Whom a throttle leaves alone: the shares, the rows of the page, and the file in between."""

from pathlib import Path

import pytest

from benchmarks.enforcement import __main__ as program
from benchmarks.enforcement import scope
from benchmarks.enforcement.comparison import Comparison
from benchmarks.enforcement.contenders import Contender
from benchmarks.enforcement.report import report
from benchmarks.enforcement.tenants import (
    CLIENTS,
    FILLS,
    OTHER,
    Tenants,
    compare_tenants,
    tenant_figures,
)
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from tests.benchmarks.pages import run, texts

CROSSED_AT = 100.0
FREED_AT = 160.0


def course(*rates: tuple[float, float]) -> Series:
    """Bytes so far of a producer that had each rate until such a time, from 80 s on."""
    sent, now = 0.0, 80.0
    samples = [(now, sent)]
    for until, rate in rates:
        sent, now = sent + rate * (until - now), until
        samples.append((now, sent))
    return Series(samples)


def tenants(other: float, fills: float) -> Tenants:
    """Each of web's producers has such a share while etl's have such a one; then all are back."""
    shares = {OTHER: other, FILLS: fills}
    return Tenants(
        CROSSED_AT,
        FREED_AT,
        {
            (tenant, client): course((CROSSED_AT, 3e6), (FREED_AT, 3e6 * share), (191.0, 3e6))
            for tenant, share in shares.items()
            for client in CLIENTS
        },
    )


def test_shares_are_of_the_producer_s_own_rate_before() -> None:
    """The rate before is that of 8 s, whatever the start was like."""
    acknowledged = course((90.0, 1e6), (CROSSED_AT, 4e6), (FREED_AT, 3e6), (190.0, 2e6))
    found = tenant_figures(acknowledged, CROSSED_AT, FREED_AT)
    assert pytest.approx((4e6, 0.75, 0.75, 0.5)) == (
        found.before,
        found.during,
        found.least,
        found.after,
    )


def test_a_gap_of_some_seconds_is_not_lost_in_a_minute() -> None:
    """Of 60 s without 3 there is 95 % left, but there are 5 s that had 40 %."""
    acknowledged = course((CROSSED_AT, 4e6), (140.0, 4e6), (143.0, 0.0), (190.0, 4e6))
    found = tenant_figures(acknowledged, CROSSED_AT, FREED_AT)
    assert pytest.approx((0.95, 0.4)) == (found.during, found.least)


def test_a_gap_at_the_end_of_the_throttle_is_seen() -> None:
    """The last 5 s of it count too, and what comes after the freeing does not."""
    acknowledged = course((CROSSED_AT, 4e6), (156.0, 4e6), (FREED_AT, 0.0), (190.0, 4e6))
    assert pytest.approx(0.2, abs=0.01) == tenant_figures(acknowledged, CROSSED_AT, FREED_AT).least


def test_without_a_rate_before_there_is_no_share() -> None:
    """It is an error, since all else is divided by it."""
    with pytest.raises(ValueError, match="nothing acknowledged before"):
        tenant_figures(course((CROSSED_AT, 0.0), (190.0, 1e6)), CROSSED_AT, FREED_AT)


def cells(rows: list[Comparison]) -> list[tuple[str, str, str, bool | None]]:
    return [(each.peer, each.ours, each.target, each.met) for each in rows]


def test_the_other_tenant_is_to_have_95_percent() -> None:
    """Its rows come first, of each client, and only they have a target."""
    rows = list(compare_tenants(tenants(0.0, 0.0), tenants(0.95, 0.02)))
    assert [f"{who}, {client}: before" for who in (OTHER, FILLS) for client in CLIENTS] == [
        row.figure for row in rows if "before" in row.figure
    ]
    before, during, least, after = cells(rows)[:4]
    assert ("3.00 MB/s", "3.00 MB/s", "", None) == before
    assert ("0.0%", "95.0%", "≥ 95%", True) == during
    assert ("0.0%", "95.0%", "", None) == least
    assert ("100.0%", "100.0%", "", None) == after
    assert ("0.0%", "2.0%", "", None) == cells(rows)[9]
    assert 2 == sum(row.met is True for row in rows)


def test_less_is_missed_and_one_alone_is_no_comparison() -> None:
    """It is missed for each client; without ours nothing is met."""
    rows = list(compare_tenants(None, tenants(0.94, 0.02)))
    assert 2 == sum(row.met is False for row in rows)
    assert {""} == {row.peer for row in rows}
    rows = list(compare_tenants(tenants(0.0, 0.0), None))
    assert {None} == {row.met for row in rows}
    assert {""} == {row.ours for row in rows}


def test_the_page_has_the_tenants_table_and_picture(tmp_path: Path) -> None:
    """They are made of files, which have all that the figures need."""
    tenants(0.0, 0.0).save(tmp_path / "scope.peer.json")
    tenants(0.97, 0.02).save(tmp_path / "scope.ours.json")
    page = report(tmp_path, tmp_path / "page.md")
    assert "Space is freed 60 s after the\n" in page
    assert "| while etl is throttled | 0.0% | 97.0% | ≥ 95% | yes |" in page
    said = texts(tmp_path / "page-scope.svg")
    for name in ("plugin", "ours"):
        for client in CLIENTS:
            assert 2 == said.count(f"{name}, {client}"), "a line in each of the two panels"
    assert {"limit crossed", "space freed"} <= set(said)


def test_one_that_can_not_be_measured_does_not_lose_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is shown, the exit code is 1, and the page has the other's figures."""

    async def measure(contender: Contender) -> Tenants:
        if contender.key == "peer":
            raise ClusterError("no jar")
        return tenants(0.97, 0.02)

    monkeypatch.setattr(scope, "measure", measure)
    assert 1 == run(monkeypatch, program, tmp_path, "scope")
    output = capsys.readouterr()
    assert "no jar" in output.err
    assert "| while etl is throttled |  | 97.0% | ≥ 95% | yes |" in output.out
