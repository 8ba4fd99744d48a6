"""Every error is a problem document that repeats nothing of what was sent."""

import pytest
from starlette.requests import Request

from sidecar.api.long_poll import LongPoll
from sidecar.api.long_poll_documents import LongPollDocument
from tests.sidecar.api.build import FakeSidecar


@pytest.mark.parametrize("path", ["/nope-hunter2", "/v1/volumes/", "/v1", "/docs/x", "/status/no"])
async def test_nothing_there(path: str) -> None:
    """404 points at the documentation; it does not redirect and repeats nothing."""
    response = await FakeSidecar().get(path)
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    assert response.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no such path: /docs lists all paths.",
    }


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/throttle-factor", "GET"),
        ("DELETE", "/v1/volumes", "GET"),
        ("OPTIONS", "/v1/override", "DELETE, GET, PUT"),
        ("POST", "/docs", "GET"),
        ("GET", "/v1/brokers/1", "DELETE"),
        ("HEAD", "/v1/brokers/1", "DELETE"),
    ],
)
async def test_a_method_that_does_nothing(method: str, path: str, allowed: str) -> None:
    """405 says which method would."""
    sidecar = FakeSidecar()
    async with sidecar.client() as client:
        response = await client.request(method, path)
    assert (405, allowed) == (response.status_code, response.headers["allow"])
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_failure_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 says nothing of the exception; the server logs it."""

    async def fail(_self: LongPoll, _request: Request, _document: LongPollDocument) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(LongPoll, "read", fail)
    response = await FakeSidecar().get("/v1/throttle-factor")
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert "secret" not in response.text


async def test_a_large_body_is_refused_where_none_is_read() -> None:
    """A GET is answered with 413 too."""
    async with FakeSidecar().client() as client:
        response = await client.request("GET", "/healthz", content=b"x" * 65_537)
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"
