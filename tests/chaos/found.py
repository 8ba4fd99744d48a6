"""Lines that no log should have: tracebacks, and tasks that ended.

Example: ``tracebacks("sidecar 0", text)`` is ``["sidecar 0: KeyError: 3"]`` for a log in which one
traceback ends so.
"""

import re
from collections.abc import Iterator

_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Exit|Interrupt|Group|Timeout)\b.*")
_TASK = re.compile(
    "ended by itself|failed because of a bug|exception was never retrieved|never awaited"
)
_OURS = "\tat throttlesidecar."
_READER = "reader continues after"


def tracebacks(whose: str, text: str) -> list[str]:
    """One line for each traceback in a sidecar's log: whose, and what was raised."""
    return [f"{whose}: {raised}" for raised in _raised(text.splitlines())]


def _raised(lines: list[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        if _TRACEBACK not in line:
            continue
        after = (each.strip(" |+") for each in lines[index + 1 :])
        yield next((each for each in after if _RAISED.match(each)), "a traceback without its end")


def ended_tasks(whose: str, text: str) -> list[str]:
    """One line for each task that ended by a sidecar's log: whose, and that line."""
    return [f"{whose}: {line}" for line in text.splitlines() if _TASK.search(line)]


def callback_errors(whose: str, text: str) -> list[str]:
    """One line for each exception in a broker's log that passed through the callback's own code."""
    found: list[str] = []
    last = ""
    inside = False
    for line in text.splitlines():
        if line.startswith("\tat "):
            if _OURS in line and not inside:
                found.append(f"{whose}: {last}")
                inside = True
        else:
            last, inside = line, False
            if _READER in line:
                found.append(f"{whose}: {line}")
    return found
