"""Without a reader no sentence says that producers are throttled; it says what is missing."""

import re

import pytest

from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.readers import Refusals
from tests.sidecar.api.build import FACTORS, FakeSidecar
from tests.sidecar.status.outline import outline
from tests.sidecar.throttle.build import reading, whole, with_rules

CLAIM = re.compile("(is|are) (throttled|refused|slowed)|keeps producers|[Pp]roducer waits")
ASKED = {"factor": "0", "duration": "PT1H", "reason": "a test"}


def full() -> FakeSidecar:
    """A sidecar with a stop line, a full volume that still fills, and a throttled user."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableBytes(5)))
    for now, left in ((0.0, 9), (6.0, 8), (12.0, 5)):
        sidecar.clock.now = now
        sidecar.see(whole(now, [reading(1, now, {"/d1": left})], fenced=[3]))
    sidecar.board.throttle_users("producer_ids", {"etl": (60.0, "too many ids")})
    return sidecar


@pytest.mark.slow
async def test_the_page() -> None:
    """Its head has what would be, what is missing, and where to look."""
    page = await outline(full())
    assert [] == CLAIM.findall(page.text.replace("Nobody is throttled", ""))
    assert (
        "No broker reads this sidecar, so it throttles nobody. With a reader, producers would be "
        "refused: /d1 of broker 1 has 5\u00a0B left, the stop line is 5\u00a0B. "
        "In addition, 1 single user would be throttled."
    ) == page.headings[1]
    assert "Not enforced factor 0.0" in page.words
    assert "What to doLet a broker's quota callback read this sidecar" in page.words


async def test_the_form_of_an_override() -> None:
    """It has no effect on anybody either."""
    sidecar = full()
    async with sidecar.client() as client:
        asked = (await client.post("/override/confirm", data=ASKED)).text
        form = (await client.get("/override")).text
    assert "producers would be throttled." in asked
    assert "as far as this sidecar knows, this changes nothing" in asked
    assert [] == CLAIM.findall(asked + form)


async def test_the_form_of_a_release() -> None:
    """It says that the volume fills, not that a throttle slows that now."""
    async with full().client() as client:
        asked = (await client.post("/override/confirm", data=ASKED | {"factor": "1"})).text
    assert "5\u00a0B left, the limit is 10\u00a0B" in asked.replace(" B", "\u00a0B")
    assert "while producers are throttled" not in asked
    assert [] == CLAIM.findall(asked.replace("nobody is throttled", ""))


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [(None, "Producers are throttled: "), (Refusals(), "Producers are refused: ")],
    ids=["no authorizer", "authorizer"],
)
async def test_a_stop_without_an_authorizer(refusals: Refusals | None, expected: str) -> None:
    """Such brokers throttle and refuse nobody, and the page says so."""
    sidecar = full()
    sidecar.read_by(1, refusals)
    page = await outline(sidecar)
    assert page.headings[1].startswith(expected)
    assert ("None of the brokers that read this sidecar has the authorizer" in page.text) == (
        refusals is None
    )


async def test_the_factor_counts_its_readers() -> None:
    """A client of the API sees whether the factor has an effect."""
    sidecar = full()
    assert 0 == (await sidecar.get("/v1/throttle-factor")).json()["readers"]
    sidecar.read_by(1)
    assert 1 == (await sidecar.get("/v1/throttle-factor")).json()["readers"]
