r"""Reads sasl.jaas.config: one login module with its options.

The form is the Java client's (``org.apache.kafka.common.security.JaasConfig``): the module's class,
a control flag, ``name=value`` pairs, a semicolon. Values may be quoted with ``"`` or ``'``; in
quotes a backslash escapes the next character; comments are those of Java. No message quotes the
value, since any part of it may be the password.

Example: ``...plain.PlainLoginModule required username="ann" password="a\"b";`` has the options
username ``ann`` and password ``a"b``.
"""

import re
from collections.abc import Iterator, Mapping

_SECURITY = "org.apache.kafka.common.security."
PLAIN = _SECURITY + "plain.PlainLoginModule"
SCRAM = _SECURITY + "scram.ScramLoginModule"
OAUTHBEARER = _SECURITY + "oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule"

_OPTIONS = {
    PLAIN: frozenset({"username", "password"}),
    SCRAM: frozenset({"username", "password"}),
    OAUTHBEARER: frozenset({"clientId", "clientSecret", "scope"}),
    KERBEROS: frozenset(
        {"keyTab", "principal", "serviceName", "useKeyTab", "storeKey", "doNotPrompt"}
        | {"useTicketCache", "renewTGT", "refreshKrb5Config", "isInitiator", "debug"}
    ),
    IAM: frozenset(),
}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(
    r"""
      [\x00-\x20]+                             # blanks
    | //[^\n\r]* | /\*.*?\*/                   # comments
    | "(?P<double>(?:[^"\\\n\r]|\\.)*)"
    | '(?P<single>(?:[^'\\\n\r]|\\.)*)'
    | (?P<mark>[=;])
    | (?P<word>[^\x00-\x20="';/]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_Token = tuple[str, bool]
"""A text, and whether it is ``=`` or ``;`` outside of quotes."""

_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_jaas(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the mechanism of the login module, such as ``PLAIN``, and its options.

    Raises:
        ValueError: with a sentence that quotes nothing of the text.
    """
    tokens = list(_tokens(text))
    if not tokens or tokens.pop() != (";", True):
        raise ValueError("must end with a semicolon")
    if (";", True) in tokens:
        raise ValueError("must name one login module, not several")
    if len(tokens) < 2 or tokens[1][0].lower() not in _FLAGS:
        raise ValueError("must begin with a login module and 'required'")
    name = tokens[0][0]
    if name not in _OPTIONS:
        raise ValueError(f"must name one of the login modules {', '.join(_OPTIONS)}")
    return name, _options(tokens[2:], _OPTIONS[name])


def _options(tokens: list[_Token], known: frozenset[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    while tokens:
        match tokens[:3]:
            case [(name, False), ("=", True), (value, False)]:
                if name not in known:
                    if not known:
                        raise ValueError("may have no options: AWS's variables and files count")
                    raise ValueError(f"may only have the options {', '.join(sorted(known))}")
                options[name] = value
                tokens = tokens[3:]
            case _:
                raise ValueError(
                    "must have its options as name=value, in quotes if they contain blanks"
                )
    return options


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise ValueError("has a quote that isn't closed, or a slash outside of quotes")
        position = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            yield _ESCAPE.sub(_unescape, quoted), False
        elif match["mark"]:
            yield match["mark"], True
        elif match["word"]:
            yield match["word"], False


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)
