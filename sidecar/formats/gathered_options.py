"""Reads options and passes several as one value, for the commands of every package.

Example: ``gathered(command, "kafka", KafkaOptions, bootstrap, command_config)`` gives ``command``
both options as its argument ``kafka``.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

_R = TypeVar("_R")


def gathered(
    function: Callable[..., _R],
    name: str,
    kind: Callable[..., Any],
    *options: Callable[[Callable[..., _R]], Callable[..., _R]],
) -> Callable[..., _R]:
    """Give a command its options as one argument ``name``, of the dataclass ``kind``."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]  # a dataclass's class

    @functools.wraps(function)
    def call(*args: Any, **values: Any) -> _R:  # noqa: ANN401 - the command's own arguments
        mine = {each: values.pop(each) for each in names if each in values}
        return function(*args, **{name: kind(**mine)}, **values)

    for option in reversed(options):
        call = option(call)
    return call


def read_by(
    parse: Callable[[Any], _R], refusal: type[Exception], *errors: type[Exception]
) -> Callable[[object, object, Any], _R | None]:
    """Return an option's callback that parses its value, unless there is none.

    Args:
        parse: reads the value.
        refusal: is raised with the message of an error, such as ``click.BadParameter``.
        errors: the errors of ``parse``.
    """

    def read(_context: object, _parameter: object, value: object) -> _R | None:
        try:
            return None if value is None else parse(value)
        except errors as error:
            raise refusal(str(error)) from error

    return read


def finite(number: float) -> float:
    """Return a number of an option.

    Raises:
        ValueError: it is nan, which click finds within all bounds, or infinite.
    """
    if not math.isfinite(number):
        raise ValueError(f"{number} is out of range")
    return number
