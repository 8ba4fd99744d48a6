"""The pipeline's report in a real Chromium: its first screen, its search, and for axe."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page

from tests.integration.chromium import assert_accessible
from tests.usage_pipeline.report.rows import NOW, forecast, usage
from tests.usage_pipeline.report.test_answers import recommended
from tests.usage_pipeline.report.test_document import FULL
from usage_pipeline.report import Row, report

PHONE = 375
DESK = 1100
HEIGHT = 900
SCREENS = [(1280, 720), (DESK, HEIGHT)]
"""Width and height. Of a laptop's 1440 x 900 or 1536 x 864 a browser leaves 1280 x 720 and more."""
LINE = 24
"""Pixels, about."""
ENDS = "which => [...document.querySelectorAll(which)].map(e => e.getBoundingClientRect().bottom)"
SMALL = 40
CLIENTS = 700
TENANTS = (
    ("checkout", "checkout-service"),
    ("payments", "settlement-writer"),
    ("search", "search-indexer-eu-1"),
    ("billing", "invoice-exporter"),
    ("fraud", "fraud-scorer-stream"),
    ("mirror", "mirror-maker-to-us"),
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def tables() -> Mapping[str, Sequence[Row]]:
    """As a cluster has them: more of everything than the first screen shows, with real names.

    Many tenants are at the smallest quota.
    """
    usual = FULL["gold_recommendation"][0]
    used = [
        {
            **usage(at, name, amount / (at + 1), kind),
            "client_id": client_id,
            "events": 40 + 30 * at,
            "throttled": 10,
            "throttle_ms": 90_000 // (at + 1),
        }
        for kind, amount in (("produce", 4e7), ("fetch", 9e7), ("request", 3e4))
        for at, (name, client_id) in enumerate(TENANTS)
    ]
    made = [
        {
            **usual,
            **recommended(
                f"user={name},client-id={client_id}",
                quota + at * quota / 20,
                peak=2 * quota / (at + 1),
                share=0.01 / (at + 1),
                quota_type=kind,
            ),
            "percentile_rate": quota,
        }
        for kind, quota in (("produce", 2e6), ("fetch", 3e6), ("request", 200.0))
        for at, (name, client_id) in enumerate(TENANTS)
    ]
    small = [
        {
            **usual,
            **recommended(f"user=small-{n}", quota, peak=peak, quota_type=kind),
            "percentile_rate": peak,
        }
        for kind, quota, peak in (("produce", 1e5, 5e4), ("request", 1.0, 12.5))
        for n in range(SMALL)
    ]
    disks = [
        {**forecast(broker, 9.0 + broker, 20.0 + 4 * broker, 90.0), "log_dir": "/var/lib/kafka/d1"}
        for broker in range(6)
    ]
    return {
        **FULL,
        "gold_usage_1s": [*FULL["gold_usage_1s"], *used],
        "gold_recommendation": [*made, *small, FULL["gold_recommendation"][1]],
        "gold_disk_forecast": disks,
    }


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The report's file."""
    path = tmp_path / "report.html"
    path.write_text(report(tables(), NOW))
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """The report's file of a cluster with more tenants than the page has rows for."""
    path = tmp_path / "large.html"
    usual = FULL["gold_recommendation"][0]
    made = [{**usual, **recommended(f"user=client-{n:05}", 1e6 + n)} for n in range(CLIENTS)]
    others = {**usage(0, "", 1e6), "user": None, "client_id": None, "others": 59_400}
    used = [*FULL["gold_usage_1s"], others]
    path.write_text(report({**tables(), "gold_usage_1s": used, "gold_recommendation": made}, NOW))
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


@pytest.mark.parametrize(("width", "height"), SCREENS)
async def test_the_first_screen_answers(
    browser: Browser, made: Path, width: int, height: int
) -> None:
    """Four questions with full pictures are on it, ten rows begin right below; the rest is closed.

    Half a screen further all ten are seen, and then the search.
    """
    async with opened(browser, made, viewport={"width": width, "height": height}) as page:
        bars = await page.evaluate(
            "[...document.querySelectorAll('.card')].map("
            "card => [...card.querySelectorAll('.bars')].map(list => list.children.length))"
        )
        assert [[3, 3, 3], [4, 4], [4], [1, 2, 1]] == bars
        bottom = max(await page.evaluate(ENDS, ".card"))
        assert bottom < height
        top, end, after = await page.evaluate(
            "[document.querySelector('.wide').getBoundingClientRect().top,"
            " document.querySelector('.wide').getBoundingClientRect().bottom,"
            " document.querySelector('.search').getBoundingClientRect().top]"
        )
        assert 0 <= top - bottom < LINE
        assert end < 1.5 * height
        assert 0 <= after - end < 2 * LINE
        assert 10 == await page.locator(".cards + .wide tbody tr").count()
        assert 0 == await page.locator("details[open]").count()


async def test_a_tenant_is_found(browser: Browser, made: Path) -> None:
    """Also one that shares its row with others; what has it is opened, until nothing is wanted."""
    async with opened(browser, made) as page:
        field = page.get_by_label("Find a tenant, a broker, a log dir")
        await field.fill(f"USER=SMALL-{SMALL - 1}")
        assert "2 rows" == await page.locator("output").text_content()
        assert 1 == await page.locator("details[open]").count()
        for row in await page.locator("details[open] tbody tr:visible").all():
            assert f"{SMALL} with the smallest" in str(await row.text_content())
        await field.fill("nobody has such a name")
        assert "0 rows" == await page.locator("output").text_content()
        await field.fill("")
        assert 0 == await page.locator("details[open]").count()
        assert 0 == await page.locator("tbody tr[hidden]").count()


@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_it_is_said_why_a_tenant_is_not_found(
    browser: Browser, large: Path, width: int
) -> None:
    """Under the field stands how many of how many the page has, and where all are."""
    async with opened(browser, large, viewport={"width": width, "height": HEIGHT}) as page:
        field = page.get_by_label("Find a tenant, a broker, a log dir")
        await field.fill(f"client-{CLIENTS - 1:05}")
        assert "1 row in this page" == await page.locator("output").text_content()
        await field.fill("client-00000")
        assert "0 rows in this page" == await page.locator("output").text_content()
        note = page.locator(f"#{await field.get_attribute('aria-describedby')}")
        assert await note.is_visible()
        text = await note.inner_text()
        assert f"Recommended quotas: 500 of {CLIENTS} tenants" in text
        assert "Usage: 10 of 59,410 tenants" in text
        assert "throttle-sidecar pipeline files TABLE --out DIR" in text
        top = await note.evaluate("note => note.getBoundingClientRect().top")
        assert 0 <= top - max(await page.evaluate(ENDS, ".search output, .search input")) < LINE
        assert width == await page.evaluate("document.documentElement.scrollWidth")
        await assert_accessible(page)
