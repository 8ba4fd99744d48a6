"""Passes several options of a command as one value, for the commands of every package.

Example: ``gathered(command, "kafka", KafkaOptions, bootstrap, command_config)`` gives ``command``
both options as its argument ``kafka``.
"""

import functools
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
