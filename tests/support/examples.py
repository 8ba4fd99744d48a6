"""Fewer examples than tests/conftest.py's profile has, for tests whose examples are dear."""

from hypothesis import settings

assert settings.default is not None
_dear = max(5, settings.default.max_examples // 10)

DEAR = settings(max_examples=_dear)
"""A tenth of the profile's, and 5 at least: where one example takes up to 100 ms."""
