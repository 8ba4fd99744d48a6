"""The rules without what takes time and no claim is about, while a search runs.

- Reasons are empty texts. The search makes one real reason for each state.
- An answer of a broker is folded once for each former state of the broker, although many events
  have that answer.
- ``replace`` is one that takes a third of the time.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from sidecar.throttle import decision, fold, memory, reason, slope
from sidecar.throttle.memory import BrokerState, Computed, Memory, Slope, VolumeState


class Memo:
    """A pure function's results, for the same objects."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        # With the objects, or another one could get the address of one that is gone.
        self._results: dict[tuple[int, ...], tuple[object, Any]] = {}

    def __call__(self, *objects: object) -> Any:
        name = tuple(map(id, objects))
        known = self._results.get(name)
        if known is None:
            known = self._results[name] = objects, self._function(*objects)
        return known[1]

    def clear(self) -> None:
        """Forgets the results."""
        self._results.clear()


@contextmanager
def quietly() -> Iterator[Memo]:
    """Patches the rules, and returns what to clear before it becomes large."""
    folded = Memo(fold._read)
    with ExitStack() as patches:
        patches.enter_context(patch.object(decision, "reason", _SILENT))
        patches.enter_context(patch.object(fold, "_read", folded))
        for module in (decision, fold, memory, slope):
            patches.enter_context(patch.object(module, "replace", _replace))
        yield folded


def _silent(*_: object) -> str:
    return ""


_SILENT: Final = SimpleNamespace(**dict.fromkeys(vars(reason), _silent))
_PLACES: Final[dict[type, dict[str, int]]] = {
    kind: {each.name: at for at, each in enumerate(fields(kind))}
    for kind in (BrokerState, Computed, Memory, Slope, VolumeState)
}
_VALUES: Final = {kind: attrgetter(*places) for kind, places in _PLACES.items()}


def _replace(old: Any, **changes: Any) -> Any:
    kind = type(old)
    places, values = _PLACES[kind], [*_VALUES[kind](old)]
    for name, value in changes.items():
        values[places[name]] = value
    return kind(*values)
