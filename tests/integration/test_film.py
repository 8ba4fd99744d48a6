"""The demo's film in a real Chromium, opened as a file."""

from pathlib import Path

import pytest
from playwright.async_api import Browser

from kafka_lab.film import film
from tests.integration.chromium import SOON_MS, assert_accessible
from tests.support.sampled_scenario import sampled
from tests.support.waiting import seen

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
async def test_it_plays_and_the_slider_moves(browser: Browser, tmp_path: Path, motion: str) -> None:
    """It is used by keys alone; it complains of nothing, and requests nothing but the file."""
    file = tmp_path / "film.html"
    file.write_text(film(sampled()))
    context = await browser.new_context(
        reduced_motion="reduce" if motion == "reduce" else "no-preference", color_scheme="dark"
    )
    page = await context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    await page.goto(file.as_uri())
    slider = page.get_by_role("slider")
    await page.keyboard.press(" ")
    await page.get_by_role("button", name="Pause").wait_for(timeout=SOON_MS)
    await seen("the first caption", lambda: page.inner_text("#say"), lambda text: "writes" in text)
    assert 1.0 <= float(await slider.input_value())
    await page.keyboard.press(" ")
    assert "Play" == await page.inner_text("#play")
    await slider.focus()
    await page.keyboard.press("End")
    assert "It waits." == await page.inner_text("#say")
    assert "factor 0.0" in await page.inner_text("#now")
    await slider.fill("5")
    assert "available no sample" in await page.inner_text("#now")
    assert "It fills." in (await slider.get_attribute("aria-valuetext") or "")
    await page.get_by_role("button", name="It waits.").click()
    assert 8.0 == float(await slider.input_value())
    await assert_accessible(page)
    await context.close()
    assert [file.as_uri()] == said
