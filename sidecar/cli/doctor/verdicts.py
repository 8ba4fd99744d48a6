"""A finding of ``doctor``, and the exit code that follows from all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

Verdict = Literal["ok", "warn", "fail", "not known"]

_ORDER: Final[Sequence[Verdict]] = ("ok", "not known", "warn", "fail")
_NAMED: Final = 10
_VERBS: Final = {
    "{are}": ("is", "are"),
    "{do}": ("does", "do"),
    "{have}": ("has", "have"),
    "{read}": ("reads", "read"),
    "{run}": ("runs", "run"),
    "{wait}": ("waits", "wait"),
    "{throttle}": ("throttles", "throttle"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the table.

    Attributes:
        name: what was looked at.
        verdict: "ok" only if that was seen.
        what: what was seen, as a clause.
        to_do: what to do; "" if nothing is.
    """

    name: str
    verdict: Verdict
    what: str
    to_do: str = ""

    def about(self, ids: Sequence[int]) -> "Finding":
        """The same finding of brokers, whose verbs are written as {have}."""
        text = self.what
        for mark, (one, several) in _VERBS.items():
            text = text.replace(mark, one if len(ids) == 1 else several)
        return replace(self, what=f"{named(ids)} {text}")


def named(ids: Sequence[int]) -> str:
    """Brokers by their ids: broker 1, or brokers 1, 2 and 3 more."""
    shown = ", ".join(map(str, ids[:_NAMED]))
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"broker{'s' if len(ids) > 1 else ''} {shown}{more}"


def worst(findings: Iterable[Finding]) -> Verdict:
    """The worst verdict of all."""
    return max((each.verdict for each in findings), key=_ORDER.index, default="ok")


def exit_code(findings: Iterable[Finding]) -> int:
    """2 if something fails, 1 if something is to be looked at or not known, else 0."""
    return {"ok": 0, "fail": 2}.get(worst(findings), 1)
