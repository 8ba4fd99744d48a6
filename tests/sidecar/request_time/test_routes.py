"""Which client used what, over HTTP."""

from pathlib import Path

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from sidecar.request_time.routes import add_usage
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.reader import LogReader
from tests.sidecar.api.build import FakeSidecar

LOG = Path(__file__).parents[1] / "requestlog" / "by-hand.log"


async def test_nothing_is_known_without_a_request_log() -> None:
    """The answer says so."""
    document = (await FakeSidecar().get("/v1/request-usage")).json()
    assert (None, 0, []) == (document["request_log"], document["unread"], document["clients"])


async def test_clients_are_reported_by_their_request_time() -> None:
    """The most comes first; a request that can't be read is counted, not another logger's line."""
    log = LogReader(LOG)
    lines = [parse(line) for line in LOG.read_bytes().splitlines()]
    slow = next(line for line in lines if isinstance(line, Line) and line.user == "bob")
    for line in (*lines, *[slow] * 100, parse(b"garbage"), parse(LOG.read_bytes()[:300])):
        log.usage.record(line)
    app = FastAPI()
    add_usage(app, log)
    async with AsyncClient(transport=ASGITransport(app), base_url="http://sidecar") as client:
        document = (await client.get("/v1/request-usage")).json()
    assert (str(LOG), 1) == (document["request_log"], document["unread"])
    clients = document["clients"]
    assert ("bob", "orders-etl-0", 101) == (
        clients[0]["user"],
        clients[0]["client_id"],
        clients[0]["requests"],
    )
    times = [each["request_time_ms"] for each in clients]
    assert sorted(times, reverse=True) == times
    writer = next(each for each in clients if each["client_id"] == "orders-writer-3")
    assert (1, 198, 198) == (
        writer["throttled"],
        writer["throttle_time_ms"],
        writer["longest_throttle_time_ms"],
    )
    portal = next(each for each in clients if each["client_id"] == "adminclient-9")
    assert portal["mutations"] > 0
