"""The status page in a real Chromium: live, lost, by keyboard, without JavaScript, and for axe."""

import re
import ssl

import pytest
import trustme
from playwright.async_api import Browser, Page
from playwright.async_api import expect as expected

from tests.integration.chromium import SOON_MS, assert_accessible, opened
from tests.integration.status_scenes import SCENES, Scene, normal, throttled
from tests.sidecar.api.build import TOKEN

DEADLINE_MS = 15_000
"""Of the page's longest question: the 10 s that it asks the sidecar to wait, and 5 s."""


PHONE = 320
DESK = 1100

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def shown(page: Page, selector: str, text: str | re.Pattern[str]) -> None:
    """Waits until something says what it should."""
    await expected(page.locator(selector)).to_contain_text(text, timeout=SOON_MS)


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", list(SCENES))
async def test_axe_finds_nothing(browser: Browser, name: str, scheme: str, width: int) -> None:
    """So it is in each state, light and dark; on a phone nothing is wider than the screen."""
    size = {"width": width, "height": 900}
    async with opened(browser, SCENES[name](), color_scheme=scheme, viewport=size) as (_, page):
        if name in {"throttled", "override"}:
            await page.locator("summary").first.click(timeout=SOON_MS)
        await assert_accessible(page)
        assert width == await page.evaluate("document.documentElement.scrollWidth")
        color = await page.evaluate("getComputedStyle(document.body).color")
        assert (scheme == "dark") == (color == "rgb(232, 234, 237)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/volumes", "/override", "/override/end"])
async def test_axe_finds_nothing_on_the_other_pages(
    browser: Browser, path: str, scheme: str
) -> None:
    """The pages are all volumes, and both changes with their confirming step."""
    async with opened(browser, throttled(), color_scheme=scheme) as (served, page):
        await page.goto(served.url + path)
        await assert_accessible(page)
        if path == "/override":
            await page.fill("#reason", "a test")
            await page.get_by_role("button", name="Show its effects").click()
            await page.wait_for_selector("#token")
            await assert_accessible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_limit_is_drawn_on_the_bar(browser: Browser, scheme: str) -> None:
    """A line is where 10 of 100 GB are left, in another colour than the used and the free part."""
    async with opened(browser, throttled(), color_scheme=scheme) as (_, page):
        found = await page.locator(".volumes .bar").first.evaluate(
            """bar => [...bar.querySelectorAll("rect")].map(each => {
                const whole = bar.getBoundingClientRect(), own = each.getBoundingClientRect();
                const at = 100 * ((own.left + own.right) / 2 - whole.left) / whole.width;
                return [at, own.width > 1, getComputedStyle(each).fill];
            })"""
        )
        (track, _, free), (used, _, full), (limit, is_wide, line) = found
        assert [50.0, 91.95 / 2, 90.0] == pytest.approx([track, used, limit], abs=0.5)
        assert (True, 3) == (is_wide, len({free, full, line}))


async def test_a_change_comes_to_an_open_page(browser: Browser) -> None:
    """The sentence, the title and what a screen reader says change, without anybody loading it."""
    async with opened(browser, normal()) as (served, page):
        await shown(page, "#sentence", "Nobody is throttled")
        assert "" == await page.locator("#news").text_content()
        served.scene.poll(70.0, 8.1)
        await shown(page, "#sentence", "/var/lib/kafka/data-0 of broker 2")
        await shown(page, "#news", "data-0 of broker 2")
        assert (await page.title()).startswith("Throttled ")
        await shown(page, "#contents-1", "orders")


async def test_over_tls_too_a_change_comes_to_an_open_page(browser: Browser) -> None:
    """The page, its script and its questions are all of the same address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with opened(browser, normal(), context, ignore_https_errors=True) as (served, page):
        assert page.url.startswith("https://")
        await shown(page, "#sentence", "Nobody is throttled")
        served.scene.poll(70.0, 8.1)
        await shown(page, "#sentence", "/var/lib/kafka/data-0 of broker 2")


async def test_figures_move_without_a_change(browser: Browser) -> None:
    """A poll that changes no decision is seen too, and a screen reader does not say it."""
    scene = Scene(validity_s=2.0)
    scene.poll(0.0, 30.0)
    async with opened(browser, scene) as (served, page):
        await shown(page, "#volumes", "30.0\u00a0GB")
        served.scene.poll(60.0, 25.0)
        await shown(page, "#volumes", "25.0\u00a0GB")
        assert "" == await page.locator("#news").text_content()


async def test_what_is_in_use_stays(browser: Browser) -> None:
    """An open disclosure, the focus in it, and a selection outlast the parts being made anew."""
    async with opened(browser, throttled()) as (served, page):
        summary = page.locator("summary").first
        await summary.click(timeout=SOON_MS)
        await summary.focus()
        await page.evaluate("getSelection().selectAllChildren(document.querySelector('pre'))")
        command = await page.evaluate("String(getSelection())")
        assert "kafka-configs.sh" in command
        served.scene.poll(140.0, 7.5)
        served.scene.poll(170.0, 30.0)
        served.scene.poll(200.0, 7.0)
        await shown(page, "#sentence", "7.0\u00a0GB")
        await expected(page.locator("details[open]")).to_have_count(1)
        assert command == await page.evaluate("String(getSelection())")
        assert "SUMMARY" == await page.evaluate("document.activeElement.tagName")
        await page.evaluate("getSelection().removeAllRanges()")
        served.scene.poll(230.0, 30.0)
        served.scene.poll(260.0, 6.5)
        await shown(page, "#sentence", "6.5\u00a0GB")
        await shown(page, "#contents-1", "once a minute at most")
        await expected(page.locator("details[open]")).to_have_count(1)
        assert "SUMMARY" == await page.evaluate("document.activeElement.tagName")


async def test_the_focus_on_a_link_stays(browser: Browser) -> None:
    """A keyboard user does not begin anew at each renewal."""
    scene = Scene(validity_s=2.0)
    scene.poll(0.0, 30.0)
    async with opened(browser, scene) as (served, page):
        await page.locator("#set").focus()
        for at, left in ((60.0, 25.0), (120.0, 8.0)):
            served.scene.poll(at, left)
            await shown(page, "#volumes", f"{left}\u00a0GB")
            assert "set" == await page.evaluate("document.activeElement.id")


async def test_the_sidecar_goes_away_and_comes_back(browser: Browser) -> None:
    """The page says since when it has heard nothing, in grey; then all is as before, by itself."""
    async with opened(browser, throttled()) as (served, page):
        await shown(page, "#contents-1", "orders")
        await expected(page.locator("#lost")).to_be_hidden()
        await served.go()
        await expected(page.locator("#lost")).to_be_visible(timeout=SOON_MS)
        await shown(page, "#lost", re.compile(r"\d\d:\d\d:\d\d UTC, \d+ s ago\."))
        await shown(page, "#news", "The sidecar has not answered since")
        grey = await page.evaluate("getComputedStyle(document.querySelector('#live b')).color")
        assert "rgb(86, 96, 107)" == grey
        await assert_accessible(page)
        served.scene.poll(140.0, 30.0)
        await served.come()
        await expected(page.locator("#lost")).to_be_hidden(timeout=SOON_MS)
        await shown(page, "#sentence", "Nobody is throttled")
        assert "" == await page.evaluate("document.documentElement.className")


@pytest.mark.parametrize("path", ["/v1/throttle-factor", "/status/parts"])
async def test_the_sidecar_takes_questions_and_answers_none(browser: Browser, path: str) -> None:
    """A frozen one does so: each question has a deadline, and then it is as if it had gone."""
    async with opened(browser, throttled()) as (served, page):
        await shown(page, "#contents-1", "orders")
        served.silence.begin_at(path)
        served.scene.poll(140.0, 30.0)
        await expected(page.locator("#lost")).to_be_visible(timeout=DEADLINE_MS + SOON_MS)
        await shown(page, "#news", "The sidecar has not answered since")
        served.silence.end()
        served.scene.poll(170.0, 7.0)
        await expected(page.locator("#lost")).to_be_hidden(timeout=SOON_MS)
        await shown(page, "#sentence", "7.0\u00a0GB")


async def test_without_javascript(browser: Browser) -> None:
    """The page is the same and reloads by itself; what needs the script is not there."""
    async with opened(browser, throttled(), java_script_enabled=False) as (served, page):
        await page.wait_for_load_state()
        await shown(page, "#sentence", "data-0 of broker 2")
        assert '<meta http-equiv="refresh" content="20">' in await page.content()
        served.scene.poll(140.0, 30.0)
        await page.reload()
        await shown(page, "#sentence", "Nobody is throttled")


@pytest.mark.parametrize("javascript", [True, False])
async def test_an_override_by_hand(browser: Browser, javascript: bool) -> None:
    """The keyboard alone asks for it, is refused with a wrong token, confirms, sees and ends it."""
    async with opened(browser, throttled(), java_script_enabled=javascript) as (served, page):
        await page.locator("#set").press("Enter")
        await page.locator("#reason").fill("disk is being replaced")
        await page.locator("#reason").press("Enter")
        await shown(page, ".effect", "For 60 min, until")
        await shown(page, ".effect", "It ignores that /var/lib/kafka/data-0 of broker 2")
        assert not served.is_overridden()
        for token, path in (("wrong", "/override"), (TOKEN, "/")):
            await page.locator("#token").fill(token)
            await page.locator("#token").press("Enter")
            await page.wait_for_url(served.url + path)
        await shown(page, "#sentence", "Nobody is throttled, by an override, although")
        await shown(page, "#override", "Reason: “disk is being replaced”")
        assert served.is_overridden()
        await page.locator("#end").press("Enter")
        await shown(page, ".effect", "data-0 of broker 2")
        await page.locator("#token").fill(TOKEN)
        await page.locator("#token").press("Enter")
        await page.wait_for_url(f"{served.url}/")
        await shown(page, "#sentence", "data-0 of broker 2")
        assert not served.is_overridden()


async def test_another_sites_page_can_do_nothing(browser: Browser) -> None:
    """It can neither frame the page, nor send its form with the token that it might have got."""
    async with opened(browser, throttled()) as (served, page):
        victim = served.url.replace("127.0.0.1", "localhost")
        form = "".join(
            f"<input name='{name}' value='{value}'>"
            for name, value in (
                ("factor", "1"),
                ("duration", "PT1H"),
                ("reason", "x"),
                ("token", TOKEN),
            )
        )
        html = f"<form method=post action={served.url}/override>{form}<button>go</button></form>"
        await page.route(
            f"{victim}/elsewhere",
            lambda route: route.fulfill(body=html, content_type="text/html"),
        )
        await page.goto(f"{victim}/elsewhere")
        async with page.expect_navigation() as navigated:
            await page.click("button")
        answer = await navigated.value
        assert answer is not None
        assert 403 == answer.status
        assert not served.is_overridden()
