# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""SaslAuthenticate with its bytes left out of its text.

aiokafka logs each request and answer at DEBUG, and with PLAIN the request's bytes are the password.
On the wire these are aiokafka's own messages.
"""

from aiokafka.protocol.admin import (
    SaslAuthenticateRequest,
    SaslAuthenticateRequest_v0,
    SaslAuthenticateRequest_v1,
    SaslAuthenticateResponse_v0,
    SaslAuthenticateResponse_v1,
)
from aiokafka.protocol.api import Request


class _ResponseV0(SaslAuthenticateResponse_v0):
    def __repr__(self) -> str:
        return "SaslAuthenticateResponse_v0(hidden)"


class _ResponseV1(SaslAuthenticateResponse_v1):
    def __repr__(self) -> str:
        return "SaslAuthenticateResponse_v1(hidden)"


class _RequestV0(SaslAuthenticateRequest_v0):
    RESPONSE_TYPE = _ResponseV0

    def __repr__(self) -> str:
        return "SaslAuthenticateRequest_v0(hidden)"


class _RequestV1(SaslAuthenticateRequest_v1):
    RESPONSE_TYPE = _ResponseV1

    def __repr__(self) -> str:
        return "SaslAuthenticateRequest_v1(hidden)"


_Struct = _RequestV0 | _RequestV1


class HiddenSaslAuthenticate(Request[_Struct]):
    """The same request as one of aiokafka's, hidden."""

    API_KEY = SaslAuthenticateRequest.API_KEY

    def __init__(self, shown: SaslAuthenticateRequest) -> None:
        self._shown = shown

    def build(self, request_struct_class: type[_Struct]) -> _Struct:
        """The request in the newest version that both sides know."""
        struct: _Struct = self._shown.build(request_struct_class)
        return struct
