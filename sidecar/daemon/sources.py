"""The extension points of proposal 047: a throttle factor source and a quota source.

Each is a function without arguments, which a setting names as ``module:attribute``. A factor source
returns the throttle factor, 0.0 to 1.0, in place of a limit for volumes. A quota source returns
client quotas, which the sidecar sets in Kafka, each as ``quotas show --json`` prints it; null
removes a quota. The daemon calls the function in a thread with a deadline, so a function that hangs
delays nothing else. It is not called again until it has returned.

An exception, a value that is not valid and a missed deadline are failures, as of a poll.

Example: ``SIDECAR_FACTOR_SOURCE=my_factor:factor`` imports ``my_factor`` at the start. Once in the
check interval the daemon calls ``my_factor.factor()``. If that returns 2.0, the failure is "the
factor source my_factor:factor returned 2.0, which is not a factor from 0.0 to 1.0".
"""

import asyncio
import importlib
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from sidecar.errors import SettingsError
from sidecar.quotas.entities import Entity, QuotaKey
from sidecar.threads import OwnThreads
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

Quotas = Mapping[Entity, Mapping[str, float | None]]
"""Entity -> Kafka's name of a quota -> its value, or None to remove it."""


@dataclass(slots=True)
class Source(Generic[_T]):
    """A function that an operator has set.

    Attributes:
        name: what it is and which, for a person: "the factor source my_factor:factor".
        call: the function.
        read: converts its result; raises ValueError if that is not valid.
    """

    name: str
    call: Callable[[], object]
    read: Callable[[object], _T]
    _calling: asyncio.Future[_T | Failure] | None = field(default=None, init=False)
    _logged: type[BaseException] | None = field(default=None, init=False)

    async def ask(self, timeout_s: float) -> _T | Failure:
        """Call the function in a thread.

        Args:
            timeout_s: the deadline, seconds.
        """
        if self._calling is not None and not self._calling.done():
            return self._failure("has not returned from its last call")
        loop, threads = asyncio.get_running_loop(), OwnThreads(self.name)
        self._calling = asyncio.ensure_future(loop.run_in_executor(threads, self._result))
        await asyncio.wait([self._calling], timeout=timeout_s)
        if not self._calling.done():
            return self._failure(f"did not return within {timeout_s:g} s")
        return self._calling.result()

    def _result(self) -> _T | Failure:
        try:
            value = self.call()
            try:
                result = self.read(value)
            except ValueError as error:
                return self._failure(f"returned {error}")
        except BaseException as error:  # noqa: BLE001 - it is not our code
            # The text may contain secrets. The API shows failures, so only the log has it.
            if type(error) is not self._logged:
                _log.warning("%s failed", self.name, exc_info=error)
            self._logged = type(error)
            return self._failure(f"raised {type(error).__name__}; the log has the traceback")
        self._logged = None
        return result

    def _failure(self, text: str) -> Failure:
        return Failure(FailureKind.SOURCE, f"{self.name} {text}")


def factor_source(setting: str, path: str) -> Source[float]:
    """Import a factor source; see ``_load`` for arguments and errors."""
    return Source(f"the factor source {path}", _load(setting, path), read_factor)


def quota_source(setting: str, path: str) -> Source[Quotas]:
    """Import a quota source; see ``_load`` for arguments and errors."""
    return Source(f"the quota source {path}", _load(setting, path), read_quotas)


def read_factor(value: object) -> float:
    """Check a factor; raises ValueError if it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0:
        return value + 0.0
    raise ValueError(f"{_shown(value)}, which is not a factor from 0.0 to 1.0")


def read_quotas(value: object) -> Quotas:
    """Check quotas; raises ValueError if one is not valid."""
    if not isinstance(value, Iterable):
        raise ValueError(f"{_shown(value)}, which is no list of quotas")  # noqa: TRY004
    quotas: dict[Entity, Mapping[str, float | None]] = {}
    for entry in value:
        try:
            entity = Entity.of(entry["entity"])
            if entity in quotas:
                raise ValueError("the entity is listed twice")  # noqa: TRY301 - told like Entity.of's
            quotas[entity] = {
                QuotaKey(key).value: _quota(number) for key, number in entry["quotas"].items()
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"{_shown(entry)}, which is no quota: {type(error).__name__} {error}"
            raise ValueError(text) from error
    return quotas


def _quota(number: object) -> float | None:
    if number is None:
        return None
    if isinstance(number, int | float) and not isinstance(number, bool) and 0.0 < number < _END:
        return float(number)
    raise ValueError(f"{_shown(number)} is not > 0")


_END: Final = float("inf")
_LONGEST: Final = 80


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _load(setting: str, path: str) -> Callable[[], object]:
    """Import a function.

    Args:
        setting: the name of the setting, for messages.
        path: "module:attribute".

    Raises:
        SettingsError: it can't be imported, or can't be called without arguments.
    """
    module_name, _, names = path.partition(":")

    def refusal(text: str) -> SettingsError:
        return SettingsError((f"{setting}: {text}",))

    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        text = f"{module_name} can't be imported ({type(error).__name__}: {_line(error)})"
        raise refusal(f"{text}; install it beside the sidecar, or set PYTHONPATH") from error
    function: Any = module
    try:
        for name in names.split("."):
            function = getattr(function, name)
    except AttributeError as error:
        raise refusal(f"{module_name} has no {names}") from error
    if inspect.isclass(function) or not callable(function):
        raise refusal(f"{path} is a {type(function).__name__}, not a function or a callable object")
    if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
        raise refusal(f'{path} is async; the sidecar calls it in a thread, so define it with "def"')
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise refusal(f"{path} must be callable without arguments: {_line(error)}") from error
    except ValueError:
        # Some compiled functions do not show their arguments. If they need any, each call fails.
        pass
    result: Callable[[], object] = function
    return result


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
