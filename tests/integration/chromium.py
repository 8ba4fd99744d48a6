"""Pages in a real Chromium: the status page of a scene, served, and what axe finds on a page."""

import asyncio
import re
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as RequestScope

from sidecar.api.connections import Connections
from sidecar.api.server import HttpServer
from sidecar.settings import HostPort
from tests.integration.status_scenes import Scene

CHROMIUM = shutil.which("chromium")
"""Debian's: apt-get install -y chromium"""


SOON_MS = 20_000
"""For what the page shows when it has heard of it, on a busy machine."""


_EXPECTED = re.compile(r"net::ERR|status of 40[13]")
"""Requests that find nobody, and changes that are refused, are no fault of the page."""


class Silence:
    """An app that can take requests, as before, and answer none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._first = ""
        self._over = asyncio.Event()
        self._over.set()

    def begin_at(self, path: str) -> None:
        """Answers none from the next request for this path on."""
        self._first = path

    def end(self) -> None:
        """Answers all again, those that wait, too."""
        self._first = ""
        self._over.set()

    async def __call__(self, scope: RequestScope, receive: Receive, send: Send) -> None:
        if scope["path"] == self._first:
            self._over.clear()
        await self._over.wait()
        await self._app(scope, receive, send)


class Served:
    """A scene that is served, and can go away.

    Attributes:
        scene: whose page it is.
        url: where it is.
        silence: keeps its answers back.
    """

    def __init__(self, scene: Scene, tls: ssl.SSLContext | None = None) -> None:
        self.scene = scene
        self._tls = tls
        self._listen = HostPort("127.0.0.1", 0)
        self._server: HttpServer | None = None
        self._task: asyncio.Task[None] | None = None
        assert scene.contents is not None
        self._contents = asyncio.create_task(scene.contents.run())
        self.silence = Silence(scene.app)

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self._listen}"

    def is_overridden(self) -> bool:
        """Whether an override is in force."""
        return self.scene.board.snapshot.decision.override is not None

    async def come(self) -> None:
        """Listens, at the address that it had."""
        tls = self._tls
        self._server = HttpServer(
            self.silence, self._listen, Connections(64), tls=(lambda: tls) if tls else None
        )
        self._listen = self._server.address
        self._task = asyncio.create_task(self._server.serve())

    async def go(self) -> None:
        """Closes the listener and cuts every connection."""
        if self._server is not None and self._task is not None:
            self._server.stop()
            await self._task
            self._server = None

    async def end(self) -> None:
        """Ends it for good."""
        self.silence.end()
        await self.go()
        self._contents.cancel()
        await asyncio.gather(self._contents, return_exceptions=True)


@asynccontextmanager
async def opened(
    browser: Browser, scene: Scene, tls: ssl.SSLContext | None = None, **options: object
) -> AsyncIterator[tuple[Served, Page]]:
    """The page of a scene; whatever the browser complains of fails the test."""
    async with AsyncExitStack() as stack:
        served = Served(scene, tls)
        stack.push_async_callback(served.end)
        await served.come()
        context: BrowserContext = await browser.new_context(**options)  # type: ignore[arg-type] # any option
        stack.push_async_callback(context.close)
        page = await context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        await page.goto(served.url)
        yield served, page
        assert [] == [each for each in said if not _EXPECTED.search(each)]


async def assert_accessible(page: Page) -> None:
    """Axe finds nothing."""
    found = (await Axe().run(page)).response
    reported = [
        (each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]
    ]
    assert [] == reported
