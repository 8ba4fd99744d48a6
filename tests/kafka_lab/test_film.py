"""The demo's film: the values of its page are the samples, and nothing else."""

import json
import re
from typing import Any

import pytest

from kafka_lab.film import film
from kafka_lab.scenario import Scenario
from tests.support.sampled_scenario import sampled


def data(page: str) -> dict[str, Any]:
    """What the page plays."""
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


def test_each_value_is_a_sample_and_a_gap_stays_one() -> None:
    """Available bytes, the factor at the filled broker's sidecar, and the rate over a second."""
    page = film(sampled())
    values = {name: cells for name, _, cells in data(page)["values"]}
    assert [90.0, 82.0, 74.0] == values["available"][:5:2]
    assert {8.0} == {cell for cell in values["etl"] if cell is not None}
    # Cells of half a second: a sample counts for a moment, and a rate needs two.
    assert [9, 10, 11] == [at for at, cell in enumerate(values["available"]) if cell is None]
    assert [0, 1, 9, 10, 11, 12, 13] == [
        at for at, cell in enumerate(values["etl"]) if cell is None
    ]
    # A sidecar that answers once a second was heard all the time.
    assert [1.0] * 16 + [0.0] * 5 == values["factor"]
    # The lines of bytes and of the rate end before the gap, and begin again after it.
    assert 2 + 1 + 2 == len(re.findall(r'class="line"[^>]* d="M[^"]*L', page))


def test_captions_have_their_times_and_are_no_markup() -> None:
    """Those that are close share a number in the picture."""
    page = film(sampled())
    assert [1.0, 1.1, 8.0] == [at for at, _ in data(page)["captions"]]
    assert "1.0 s: etl &lt;/script&gt; writes." in page
    assert ["1-2", "3"] == re.findall(r">(1-2|[123])</text>", page.split("throttle factor")[0])
    assert 2 == page.count("</script>")


def test_the_page_names_no_other_file() -> None:
    """A film without samples is refused."""
    page = film(sampled())
    assert not re.search(r"\b(src|href)=|url\(|https?://(?!www\.w3\.org/2000/svg)", page)
    with pytest.raises(ValueError, match="nothing to draw"):
        film(Scenario())
