# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""SaslAuthenticate requests whose text does not contain their bytes.

aiokafka logs each request and answer at DEBUG, and with PLAIN the bytes of the request contain the
password. On the wire, the messages are the same as aiokafka's.
"""

from typing import Any

from aiokafka.protocol.admin import (
    SaslAuthenticateRequest,
    SaslAuthenticateRequest_v0,
    SaslAuthenticateRequest_v1,
)
from aiokafka.protocol.api import Request


def _hidden(shown: Any, **attributes: object) -> Any:  # noqa: ANN401 - aiokafka has no types
    """A subclass of one of aiokafka's messages, whose text does not contain the values."""
    text = f"{shown.__name__}(hidden)"
    return type(shown.__name__, (shown,), {**attributes, "__repr__": lambda _self: text})


_V0, _V1 = (
    _hidden(shown, RESPONSE_TYPE=_hidden(shown.RESPONSE_TYPE))
    for shown in (SaslAuthenticateRequest_v0, SaslAuthenticateRequest_v1)
)


class HiddenSaslAuthenticate(Request[_V0 | _V1]):
    """One of aiokafka's requests, with a text that hides its bytes."""

    API_KEY = SaslAuthenticateRequest.API_KEY

    def __init__(self, shown: SaslAuthenticateRequest) -> None:
        self._shown = shown

    def build(self, request_struct_class: type[Any]) -> Any:  # noqa: ANN401 - as above
        """Builds the request in the newest version that both sides support."""
        return self._shown.build(request_struct_class)
