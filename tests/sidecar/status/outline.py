"""A page of the sidecar, as far as tests read it."""

from html.parser import HTMLParser

from tests.sidecar.api.build import FakeSidecar


class Outline(HTMLParser):
    """What matters of a page.

    Attributes:
        tags: every element with its attributes.
        headings: the texts of headings, in order.
        text: all text.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.text = ""
        self._in: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in {"h1", "h2"}:
            self.headings.append("")
            self._in.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"h1", "h2"}:
            self._in.pop()

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in:
            self.headings[-1] += data

    @property
    def words(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())


async def outline(sidecar: FakeSidecar, path: str = "/") -> Outline:
    """A page of the sidecar."""
    response = await sidecar.get(path)
    assert 200 == response.status_code
    assert "text/html; charset=utf-8" == response.headers["content-type"]
    return Outline(response.text)
