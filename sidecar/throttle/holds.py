"""Users whose producers are held for a while, whatever the volumes say (KIP-936).

A hold is one user's factor 0.0 until a known time; it ends by itself, or is taken back. A user who
is held anew keeps the beginning, and has the new end.

Example: alice is held at 100 s for 72 s. At 172 s she still is, by the rule of ``validity``; after
that she is not, and ``next_end`` said so from the beginning.

Source: KIP-936, section "ProducerIdQuotaManager".
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sidecar.throttle.validity import is_valid


@dataclass(frozen=True, slots=True)
class UserHold:
    """One user's producers are held.

    Attributes:
        since: from when on, steady seconds.
        ends_at: the last moment at which it holds, steady seconds.
        reason: one sentence for a person.
    """

    since: float
    ends_at: float
    reason: str


Holds = Mapping[str, UserHold]
"""User name -> hold, which may have ended."""


def hold(holds: Holds, user: str, ends_at: float, reason: str, now: float) -> Holds:
    """Holds, with a user held until ``ends_at``, steady seconds; those that ended are left out."""
    return hold_all(holds, {user: (ends_at, reason)}, now)


def hold_all(holds: Holds, until: Mapping[str, tuple[float, str]], now: float) -> Holds:
    """As ``hold``, for many users: name -> the end and the reason."""
    held = dict(in_force(holds, now))
    for user, (ends_at, reason) in until.items():
        since = held[user].since if user in held else now
        held[user] = UserHold(since, ends_at, reason)
    return held


def release(holds: Holds, users: Collection[str]) -> Holds:
    """Holds without some users'."""
    return {name: each for name, each in holds.items() if name not in users}


def in_force(holds: Holds, now: float) -> Holds:
    """Those that hold at ``now``, steady seconds."""
    return {name: each for name, each in holds.items() if is_valid(each.ends_at, 0.0, now)}


def next_end(holds: Holds, now: float) -> float | None:
    """When the next of those in force ends, steady seconds; None without any."""
    return min((each.ends_at for each in in_force(holds, now).values()), default=None)
