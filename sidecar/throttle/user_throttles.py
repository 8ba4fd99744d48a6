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
class UserThrottle:
    """One user's producers are held.

    Attributes:
        since: from when on, steady seconds.
        ends_at: the last moment at which it holds, steady seconds.
        reason: one sentence for a person.
    """

    since: float
    ends_at: float
    reason: str


UserThrottles = Mapping[str, UserThrottle]
"""User name -> hold, which may have ended."""


def throttle_user(
    user_throttles: UserThrottles, user: str, ends_at: float, reason: str, now: float
) -> UserThrottles:
    """Holds, with a user held until ``ends_at``, steady seconds; those that ended are left out."""
    return throttle_users(user_throttles, {user: (ends_at, reason)}, now)


def throttle_users(
    user_throttles: UserThrottles, until: Mapping[str, tuple[float, str]], now: float
) -> UserThrottles:
    """As ``throttle_user``, for many users: name -> the end and the reason."""
    throttles = dict(in_force(user_throttles, now))
    for user, (ends_at, reason) in until.items():
        since = throttles[user].since if user in throttles else now
        throttles[user] = UserThrottle(since, ends_at, reason)
    return throttles


def release(user_throttles: UserThrottles, users: Collection[str]) -> UserThrottles:
    """Holds without some users'."""
    return {name: each for name, each in user_throttles.items() if name not in users}


def in_force(user_throttles: UserThrottles, now: float) -> UserThrottles:
    """Those that hold at ``now``, steady seconds."""
    return {name: each for name, each in user_throttles.items() if is_valid(each.ends_at, 0.0, now)}


def next_end(user_throttles: UserThrottles, now: float) -> float | None:
    """When the next of those in force ends, steady seconds; None without any."""
    return min((each.ends_at for each in in_force(user_throttles, now).values()), default=None)
