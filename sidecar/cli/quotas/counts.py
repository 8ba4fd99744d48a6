"""How many quotas are set and how many are removed, in words.

Example: 300 changes that set a limit and 2 that remove one are "300 quotas are set and 2 are
removed"; one that removes it is "1 quota is removed".
"""

from collections.abc import Sequence

from sidecar.quotas.request_time.quota_plan import Change


def quota_counts(count: int) -> str:
    """So many quotas."""
    return f"{count:,} quota" if count == 1 else f"{count:,} quotas"


def to_do(changed: Sequence[Change]) -> str:
    """What is to be done, such as "Set 300 quotas and remove 2"."""
    setting, removing = _counts(changed)
    if not removing:
        return f"Set {quota_counts(setting)}"
    if not setting:
        return f"Remove {quota_counts(removing)}"
    return f"Set {quota_counts(setting)} and remove {removing:,}"


def are_done(changed: Sequence[Change], negation: str = "") -> str:
    """What is done, such as "300 quotas are set and 2 are removed"; empty when nothing is.

    Args:
        changed: all that is done.
        negation: "not " for changes that are not done.
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
