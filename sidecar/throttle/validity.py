"""The one boundary rule: a value computed at t with validity d is valid while now <= t + d.

Example: computed at 60 with a validity of 120, a factor is valid at 180 and not at 180.001.
"""


def is_valid(computed_at: float | None, validity_s: float, now: float) -> bool:
    """Whether a value computed at ``computed_at`` may still be used at ``now`` (all seconds).

    A value that was never computed (None) may not.
    """
    return computed_at is not None and now <= computed_at + validity_s
