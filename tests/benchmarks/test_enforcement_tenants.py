"""The throughput of a tenant that is not throttled: its shares, its rows, and the picture."""

from pathlib import Path

import pytest

from benchmarks.enforcement import tenants
from benchmarks.enforcement.__main__ import BENCHMARK
from benchmarks.enforcement.tenants import CLIENTS, FILLS, OTHER, Tenants, figures
from benchmarks.harness.throttles import Throttle
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from tests.benchmarks.pages import counted, figure, page, row, run, texts

pytestmark = pytest.mark.slow

CROSSED, FREED = 100.0, 160.0


def course(*rates: tuple[float, float]) -> Series:
    """Bytes so far of a producer that had each rate until such a time, from 80 s on."""
    return counted(*rates, begin=80.0, step=1.0)


def made(other: Series, fills: Series) -> Tenants:
    """What web's producers and etl's had acknowledged."""
    of = {OTHER: other, FILLS: fills}
    acknowledged = {f"{who}, {client}": series for who, series in of.items() for client in CLIENTS}
    return Tenants(CROSSED, FREED, acknowledged)


def shares(other: float, fills: float) -> Tenants:
    """Each of web's producers has such a share while etl's have such a one; then all are back."""
    return made(
        *(course((CROSSED, 3e6), (FREED, 3e6 * each), (191.0, 3e6)) for each in (other, fills))
    )


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        # The rate before is that of 8 s, whatever the start was like.
        (((90.0, 1e6), (CROSSED, 4e6), (FREED, 3e6), (190.0, 2e6)), (0.75, 0.75, 0.5)),
        # Of 60 s without 3 there is 95 % left, but there are 5 s that had 40 %.
        (((CROSSED, 4e6), (140.0, 4e6), (143.0, 0.0), (190.0, 4e6)), (0.95, 0.4, 1.0)),
        # The last 5 s of the throttle count too, and what comes after the freeing does not.
        (((CROSSED, 4e6), (156.0, 4e6), (FREED, 0.0), (190.0, 4e6)), (56 / 60, 0.2, 1.0)),
    ],
    ids=["own-rate", "gap", "gap-at-the-end"],
)
def test_shares_are_of_the_producer_s_own_rate_before(
    rates: tuple[tuple[float, float], ...], expected: tuple[float, float, float]
) -> None:
    """While etl is throttled, in the 5 s of that with the least, and after the freeing."""
    found = figures(made(course(*rates), course((191.0, 1e6))))
    _, *of = [each.value for name, each in found.items() if name.startswith("web, Java")]
    assert 4.0 == figure(found, "web, Java: before")
    assert pytest.approx(expected, abs=0.01) == tuple(of)


def test_without_a_rate_before_there_is_no_share() -> None:
    """It is an error, since all else is divided by it."""
    with pytest.raises(ValueError, match="nothing was acknowledged before"):
        figures(made(course((CROSSED, 0.0), (190.0, 1e6)), course((190.0, 1e6))))


def test_the_other_tenant_is_to_have_95_percent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its rows come first, of each client, and only they have a target; one alone is measured."""
    ours = 0.95

    async def measure(arm: Throttle, throttled_s: float) -> Tenants:
        assert throttled_s == (150.0 if arm.key == "quotas" else 62.0)
        if arm.key != "peer":
            return shares(ours, 0.02)
        if ours < 0.95:
            raise ClusterError("no jar")
        return shares(0.0, 0.0)

    monkeypatch.setattr(tenants, "measure", measure)
    assert 0 == run(BENCHMARK, tmp_path, "scope")
    text = page(tmp_path)
    names = [line[2:].partition(":")[0] for line in text.splitlines() if ": before |" in line]
    assert [f"{who}, {client}" for who in (OTHER, FILLS) for client in CLIENTS] == names
    assert ["3.00 MB/s", "3.00 MB/s", "3.00 MB/s", "", ""] == row(text, "web, Java: before")
    assert ["0.0%", "95.0%", "95.0%", "≥ 95%", "yes"] == row(text, "web, Java: while")
    assert ["0.0%", "95.0%", "95.0%", "", ""] == row(text, "web, Java: the least")
    assert ["100.0%", "100.0%", "100.0%", "", ""] == row(text, "web, Java: in the 30 s")
    assert ["0.0%", "2.0%", "2.0%", "", ""] == row(text, "etl, librdkafka: while")
    assert 2 == text.count("≥ 95%")
    said = texts(tmp_path / "page-scope.svg")
    for line in (
        f"{name}, {client}" for name in ("plugin", "ours", "quotas") for client in CLIENTS
    ):
        assert 2 == said.count(line), "a line in each of the two panels"
    assert {"limit crossed", "space freed"} <= set(said)
    ours = 0.94
    assert 1 == run(BENCHMARK, tmp_path, "scope")
    for client in CLIENTS:
        assert ["", "94.0%", "94.0%", "≥ 95%", "NO"] == row(page(tmp_path), f"web, {client}: while")
