"""Answers to HTTP/1.0 clients, with their length: HTTP/1.0 has no chunked encoding.

uvicorn sends an answer without a Content-Length in chunks, whatever the version of the request.
Such an answer is collected here and gets its length. It is sent in its pieces, so that the answer
is in progress until the client has read almost all of it.

Example: nginx, which proxies with HTTP/1.0 by default, gets /metrics with a Content-Length.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


def whole_answers(app: ASGIApp) -> ASGIApp:
    """Return the app with the length of each answer."""

    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {}
        pieces: list[bytes] = []

        async def collect(message: Message) -> None:
            if message["type"] != "http.response.body":
                start.update(message)
                return
            pieces.append(message.get("body", b""))
            if message.get("more_body"):
                return
            if len(pieces) > 1:
                length = (b"content-length", str(sum(map(len, pieces))).encode())
                start["headers"] = [*start["headers"], length]
            await send(start)
            last = len(pieces) - 1
            for number, piece in enumerate(pieces):
                more = number < last
                await send({"type": "http.response.body", "body": piece, "more_body": more})

        await app(scope, receive, collect)

    return whole
