"""The pipeline's report in a real Chromium: its first screen, its search, and for axe."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page

from sidecar.pipeline.report import Row, report
from tests.integration.chromium import assert_accessible
from tests.pipeline.report.rows import NOW
from tests.pipeline.report.test_answers import recommended
from tests.pipeline.report.test_document import FULL

PHONE = 375
DESK = 1100
HEIGHT = 900
SMALL = 40

pytestmark = pytest.mark.asyncio(loop_scope="session")


def tables() -> Mapping[str, Sequence[Row]]:
    """With many tenants at the smallest quota, as a cluster has them."""
    usual = FULL["gold_recommendation"][0]
    made = [
        {**usual, **recommended("user=etl", 8e6, peak=6e6)},
        {**usual, **recommended("user=web,client-id=a-rather-long-client-id-of-a-service")},
        *({**usual, **recommended(f"user=small-{n}", 1e5)} for n in range(SMALL)),
    ]
    return {**FULL, "gold_recommendation": made}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The report's file."""
    path = tmp_path / "report.html"
    path.write_text(report(tables(), NOW))
    return path


@asynccontextmanager
async def opened(browser: Browser, path: Path, **options: object) -> AsyncIterator[Page]:
    """The report, from its file; whatever the browser complains of fails the test."""
    context = await browser.new_context(**options)  # type: ignore[arg-type] # any option
    try:
        page = await context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        await page.goto(path.as_uri())
        yield page
        assert [] == said
    finally:
        await context.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(browser: Browser, made: Path, scheme: str, width: int) -> None:
    """Of the first screen and of all that is behind it; nothing is wider than the screen."""
    size = {"width": width, "height": HEIGHT}
    async with opened(browser, made, color_scheme=scheme, viewport=size) as page:
        for is_open in (False, True):
            await page.evaluate(
                "open => document.querySelectorAll('details').forEach(one => one.open = open)",
                is_open,
            )
            await assert_accessible(page)
            assert width == await page.evaluate("document.documentElement.scrollWidth")
        if width == DESK:
            # What the tables say is not cut off at the right.
            cut = await page.evaluate(
                "[...document.querySelectorAll('.wide')].filter("
                "one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
            )
            assert [] == cut


async def test_the_first_screen_answers(browser: Browser, made: Path) -> None:
    """Four questions with a picture each are on it; the rest is closed."""
    size = {"width": DESK, "height": HEIGHT}
    async with opened(browser, made, viewport=size) as page:
        ends = await page.evaluate(
            "[...document.querySelectorAll('.card')].map("
            "one => [one.querySelectorAll('.bars').length, one.getBoundingClientRect().bottom])"
        )
        assert 4 == len(ends)
        assert all(pictures for pictures, _ in ends)
        assert max(bottom for _, bottom in ends) < HEIGHT
        assert 0 == await page.locator("details[open]").count()


async def test_a_tenant_is_found(browser: Browser, made: Path) -> None:
    """Also one that shares its row with others; what has it is opened, until nothing is wanted."""
    async with opened(browser, made) as page:
        field = page.get_by_label("Find a tenant, a broker, a log dir")
        await field.fill(f"USER=SMALL-{SMALL - 1}")
        assert "1 row" == await page.locator("output").text_content()
        assert 1 == await page.locator("details[open]").count()
        row = page.locator("details[open] tbody tr:visible")
        assert f"{SMALL} with the smallest" in str(await row.text_content())
        await field.fill("nobody has such a name")
        assert "0 rows" == await page.locator("output").text_content()
        await field.fill("")
        assert 0 == await page.locator("details[open]").count()
        assert 0 == await page.locator("tbody tr[hidden]").count()
