"""Bearer tokens that change while clients use them."""

import logging

import pytest

from sidecar.control.tokens import FORMER_S, Tokens


class Scene:
    """Tokens whose clock and file a test changes."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.file = "first"
        self.reads = 0
        self.tokens = Tokens("first", lambda: self.now, self._read)

    async def _read(self) -> None:
        self.reads += 1
        self.tokens.replace(self.file, ends_former=False)

    async def accepted(self, *tokens: str) -> list[str]:
        return [each for each in tokens if await self.tokens.accept(each.encode())]


async def test_the_former_token_is_accepted_for_five_minutes() -> None:
    """At the end of that time it still is, and not after it."""
    scene = Scene()
    scene.tokens.replace("second", ends_former=False)
    scene.file = "second"
    scene.now += FORMER_S
    assert ["first", "second"] == await scene.accepted("first", "second")
    scene.now += 0.001
    assert ["second"] == await scene.accepted("first", "second")


async def test_a_client_with_the_former_token_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So is that it ends, five minutes after the change and not after the request."""
    caplog.set_level(logging.INFO)
    scene = Scene()
    scene.file = "second"
    scene.tokens.replace("second", ends_former=False)
    assert ["second"] == await scene.accepted("second")
    assert not scene.tokens.is_former_used
    for _ in range(2):
        scene.now += FORMER_S / 2
        assert ["first"] == await scene.accepted("first")
        scene.tokens.log_end_of_former()
        assert scene.tokens.is_former_used
    assert 1 == len(caplog.messages)
    assert "former token, which is accepted for 150 s more" in caplog.text
    scene.now += 0.001
    assert not scene.tokens.is_former_used
    scene.tokens.log_end_of_former()
    scene.tokens.log_end_of_former()
    assert ["the former token, which a client used, is no longer accepted"] == caplog.messages[1:]
    assert "first" not in caplog.text


async def test_sighup_ends_the_use_of_a_former_token() -> None:
    """Its client is refused at once."""
    scene = Scene()
    scene.file = "second"
    scene.tokens.replace("second", ends_former=False)
    assert ["first"] == await scene.accepted("first")
    scene.tokens.replace("second", ends_former=True)
    assert not scene.tokens.is_former_used


async def test_each_former_token_has_its_own_time() -> None:
    """Two changes within five minutes end neither of the former tokens early, nor late."""
    scene = Scene()
    scene.tokens.replace("second", ends_former=False)
    scene.now += 200.0
    scene.file = "third"
    scene.tokens.replace("third", ends_former=False)
    assert ["first", "second", "third"] == await scene.accepted("first", "second", "third")
    scene.now += FORMER_S - 199.0
    assert ["second", "third"] == await scene.accepted("first", "second", "third")


async def test_sighup_ends_former_tokens() -> None:
    """Also when the token itself is as before: an operator ends a stolen one with it."""
    scene = Scene()
    scene.file = "second"
    scene.tokens.replace("second", ends_former=False)
    scene.tokens.replace("second", ends_former=True)
    assert ["second"] == await scene.accepted("first", "second")


async def test_a_token_that_is_newer_than_the_one_read() -> None:
    """The file is read before a token is refused, and not for a token that is known."""
    scene = Scene()
    scene.file = "second"
    assert ["first"] == await scene.accepted("first")
    assert 0 == scene.reads
    assert ["second"] == await scene.accepted("second")
    assert 1 == scene.reads


async def test_without_a_token_nothing_is_accepted() -> None:
    """Neither the former one, nor none, and nothing is read."""
    scene = Scene()
    scene.tokens.replace(None, ends_former=False)
    assert [] == await scene.accepted("first", "", "None")
    assert 0 == scene.reads
    assert not scene.tokens.is_set


async def test_its_text_has_no_token() -> None:
    """Neither the current nor the former one."""
    scene = Scene()
    scene.tokens.replace("second", ends_former=False)
    assert "Tokens(is_set=True, former=1)" == repr(scene.tokens)
