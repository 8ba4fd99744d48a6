"""The folder for caches."""

from pathlib import Path

import pytest

from sidecar.formats.cache_folder import cache_folder


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CACHE_HOME": "/c"}, Path("/c/throttle-sidecar")),
        ({"XDG_CACHE_HOME": "relative"}, Path.home() / ".cache/throttle-sidecar"),
        ({"XDG_CACHE_HOME": ""}, Path.home() / ".cache/throttle-sidecar"),
        ({}, Path.home() / ".cache/throttle-sidecar"),
    ],
)
def test_where_it_is(environ: dict[str, str], expected: Path) -> None:
    """It is where the XDG base directory specification says, relative paths ignored."""
    assert expected == cache_folder(environ)
