"""Says in words how many quotas are set and how many are removed.

Example: with 300 changes that set a limit and 2 that remove one, the text is "300 quotas are set
and 2 are removed". With one change that removes a limit it is "1 quota is removed".
"""

from collections.abc import Sequence

from sidecar.quotas.request_time.quota_plan import Change


def quota_counts(count: int) -> str:
    """Return a number of quotas in words."""
    return f"{count:,} quota" if count == 1 else f"{count:,} quotas"


def to_do(changed: Sequence[Change]) -> str:
    """Return the planned changes in words, such as "Set 300 quotas and remove 2"."""
    setting, removing = _counts(changed)
    if not removing:
        return f"Set {quota_counts(setting)}"
    if not setting:
        return f"Remove {quota_counts(removing)}"
    return f"Set {quota_counts(setting)} and remove {removing:,}"


def are_done(changed: Sequence[Change], negation: str = "") -> str:
    """Return changes in words, such as "300 quotas are set and 2 are removed"; empty without any.

    Args:
        changed: the changes.
        negation: "not " if the changes were not made.
    """
    texts: list[str] = []
    for count, done in zip(_counts(changed), ("set", "removed"), strict=True):
        if count:
            who = f"{count:,}" if texts else quota_counts(count)
            texts.append(f"{who} {'is' if count == 1 else 'are'} {negation}{done}")
    return " and ".join(texts)


def _counts(changed: Sequence[Change]) -> tuple[int, int]:
    removing = sum(change.after is None for change in changed)
    return len(changed) - removing, removing
