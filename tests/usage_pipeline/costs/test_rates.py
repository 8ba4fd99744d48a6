"""A file of rates, and what is wrong with one."""

from decimal import Decimal
from pathlib import Path

import pytest

from usage_pipeline.costs.inputs import CostsError
from usage_pipeline.costs.rates import Kind, Rates, read_rates

EUR = 'currency = "EUR"\n'


def rates(path: Path, text: str) -> Rates:
    path.joinpath("rates.toml").write_text(text)
    return read_rates(path / "rates.toml")


def test_numbers_are_exact(tmp_path: Path) -> None:
    """A tenth is a tenth; a kind without a price is not in the bill."""
    text = f"{EUR}produced_gb = 0.1\nthread_hour = 2\n[bills]\n2026-11 = 12000.01\n"
    prices = {Kind.PRODUCED: Decimal("0.1"), Kind.REQUEST_TIME: Decimal(2)}
    assert Rates("EUR", prices, {"2026-11": Decimal("12000.01")}) == rates(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("currency = ", "is not TOML: "),
        ("produced_gb = 1", "currency must be three letters"),
        ('currency = "euro"\nproduced_gb = 1', "currency must be three letters"),
        (EUR, "there is no price above 0; add one of produced_gb, "),
        (f"{EUR}produced_gb = 0", "there is no price above 0"),
        (f"{EUR}produced = 1", "produced is not a key here; use currency, produced_gb, "),
        (f"{EUR}produced_gb = -1", "produced_gb must be a number of at least 0"),
        (f"{EUR}produced_gb = nan", "produced_gb must be a number"),
        (f'{EUR}produced_gb = "1"', "produced_gb must be a number"),
        (f"{EUR}produced_gb = true", "produced_gb must be a number"),
        (f"{EUR}produced_gb = 1e99", "produced_gb must be a number of at least 0, below 1,0"),
        (f"{EUR}produced_gb = 1\nbills = 2", "bills must be a table"),
        (f"{EUR}produced_gb = 1\n[bills]\n2026-13 = 2", "bills.2026-13 is not a month"),
        (f"{EUR}produced_gb = 1\n[bills]\n2026-11 = 0.001", "must have two decimals at most"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, problem: str) -> None:
    """The message has the file and the key."""
    with pytest.raises(CostsError) as raised:
        rates(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path}/rates.toml")
    assert problem in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message has the cause."""
    with pytest.raises(CostsError, match=r"rates\.toml can't be read: No such file"):
        read_rates(tmp_path / "rates.toml")
