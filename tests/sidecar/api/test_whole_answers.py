"""Answers to HTTP/1.0 clients have a length."""

from starlette.types import Message, Receive, Scope, Send

from sidecar.api.whole_answers import whole_answers

PIECES = (b"a first piece, ", b"and a second")


async def _app(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for piece in PIECES:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def test_pieces_are_sent_one_by_one() -> None:
    """So a client that reads nothing has one of them waiting for it, not the whole answer."""
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the app does not read")

    async def send(message: Message) -> None:
        sent.append(message)

    await whole_answers(_app)({"type": "http"}, receive, send)
    head, *bodies = sent
    assert [(b"content-length", b"27")] == head["headers"]
    assert [*PIECES, b""] == [each["body"] for each in bodies]
    assert [True, True, False] == [each["more_body"] for each in bodies]
