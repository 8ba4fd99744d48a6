"""No command takes a number that is none."""

from collections.abc import Iterator

import click
import pytest

from sidecar.cli import group


def numbers(at: click.Command, path: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """The command and the name of each parameter with decimals, and the parameter."""
    for each in at.params:
        if isinstance(each.type, click.types.FloatParamType):
            yield f"{path} {each.name}", each
    if isinstance(at, click.Group):
        context = click.Context(at)
        for name in at.list_commands(context):
            found = at.get_command(context, name)
            assert found is not None
            yield from numbers(found, f"{path} {name}".strip())


NUMBERS = dict(numbers(group))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("text", ["nan", "inf"])
def test_a_number_is_finite(name: str, text: str) -> None:
    """Click's own type takes nan, whatever the bounds are."""
    with pytest.raises(click.BadParameter):
        NUMBERS[name].process_value(click.Context(group), text)


def test_some_commands_have_such_parameters() -> None:
    """So that the test above is not empty."""
    assert {"override set factor", "pipeline forecast horizon_days"} <= set(NUMBERS)
    assert 0.5 == NUMBERS["override set factor"].process_value(click.Context(group), "0.5")
