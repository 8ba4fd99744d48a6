"""The page of a sidecar whose factor comes from a factor source: it claims nothing of volumes."""

from html import unescape

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.memory import Override
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.status.outline import outline

BROKEN = Failure(FailureKind.SOURCE, "the factor source my:factor raised OSError")


def sidecar() -> FakeSidecar:
    built = FakeSidecar(factors=VolumeLimit(Rules(None, 300.0), 0.0))
    built.read_by(1)
    return built


async def test_its_factor() -> None:
    """The cause, the end and the empty sections name the source; every route answers."""
    built = sidecar()
    for factor, effect in (
        (0.25, "Producers are slowed to 25 % of their quotas"),
        (1.0, "Nobody is throttled"),
        (0.0, "Producers are throttled"),
    ):
        built.board.take_factor(factor, 0.0)
        words = (await outline(built)).words
        assert f"{effect}: the factor source returned {factor:g}." in words
        assert "Until the factor source returns another factor." in words
        assert "No volume is read: the factor source decides." in words
        assert "No broker is polled: the factor source decides." in words
        assert "every volume" not in words
        assert "the volumes decide" not in words
        for path in ("/volumes", "/v1/quota-factors", "/v1/throttle-factor", "/v1/volumes"):
            assert 200 == (await built.get(path)).status_code


async def test_its_failure_and_the_fallback() -> None:
    """After the validity the fallback applies, because of the source and not of volumes."""
    built = sidecar()
    built.board.take_factor(1.0, 0.0)
    built.clock.now = 301.0
    built.board.fail(BROKEN)
    words = (await outline(built)).words
    reason = f"the last valid observation is 301 s old: {BROKEN.message}"
    assert f"Producers are throttled, by the fallback: {reason}." in words
    assert "Make sure that the factor source works" in words
    assert "volumes can't be read" not in words


async def test_the_end_of_an_override() -> None:
    """What follows is the source's factor, or the fallback while the source fails."""
    built = sidecar()
    built.board.set_override(Override(1.0, "by hand", 0.0, 3600.0))
    failing = unescape((await built.get("/override/end")).text)
    assert "instead. Producers are throttled, by the fallback: no observation yet." in failing
    built.board.take_factor(0.25, 0.0)
    ending = unescape((await built.get("/override/end")).text)
    assert "instead. Producers are slowed to 25 % of their quotas: the factor source" in ending
