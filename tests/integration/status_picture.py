"""Draws docs/status-page.png: ``python -m tests.integration.status_picture``."""

import asyncio
from pathlib import Path

from playwright.async_api import async_playwright

from tests.integration.chromium import CHROMIUM, SOON_MS, opened
from tests.integration.status_scenes import throttled

TARGET = Path(__file__).parents[2] / "docs" / "status-page.png"
WIDTH, HEIGHT = 860, 940


async def main() -> None:
    """The throttled scene, as far as the brokers."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size = {"width": WIDTH, "height": HEIGHT}
        async with opened(browser, throttled(), viewport=size) as (_, page):
            await page.wait_for_selector("summary", timeout=SOON_MS)
            await page.screenshot(path=TARGET)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
