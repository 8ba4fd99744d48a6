"""What the API server gets of an event, and what its answers mean."""

from pathlib import Path
from typing import Any

import pytest

from sidecar.http import Response
from sidecar.webhook.kubernetes import EventPoster
from sidecar.webhook.sender import NotAllowedError


@pytest.mark.parametrize(
    ("status", "expected"),
    [(201, 201), (409, 201), (429, 429), (503, 503), (401, None), (403, None)],
)
async def test_an_answer(tmp_path: Path, status: int, expected: int | None) -> None:
    """One that exists was taken; a missing right is named; the token is read each time."""
    sent: list[tuple[str, str, str]] = []

    async def send(method: str, url: str, *, headers: dict[str, str], **_: Any) -> Response:
        sent.append((method, url, headers["Authorization"]))
        return Response(status, "", b"")

    poster = EventPoster("https://api/events", send, tmp_path)
    for token in ("one", "two"):
        (tmp_path / "token").write_text(token)
        if expected is None:
            with pytest.raises(
                NotAllowedError, match=f"{status}: bind a Role with the verb create"
            ):
                await poster.post(b"{}", {})
        else:
            assert expected == await poster.post(b"{}", {})
    assert [("POST", "https://api/events", f"Bearer {each}") for each in ("one", "two")] == sent
    (tmp_path / "token").unlink()
    with pytest.raises(NotAllowedError, match=r"token .* can't be read.*automount"):
        await poster.post(b"{}", {})
