"""sasl.jaas.config as the Java client reads it."""

import pytest

from sidecar.formats.jaas import OAUTHBEARER, PLAIN, SCRAM, parse_jaas


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        (PLAIN, {"username": "ann", "password": "s"}, 'required username="ann" password="s";'),
        (SCRAM, {"username": "ann", "password": "s"}, "REQUIRED\tusername=ann\n password='s' ;"),
        (SCRAM, {"password": 'a"b\\c;= /d'}, 'requisite password="a\\"b\\\\c;= /d";'),
        (PLAIN, {"password": "it's"}, "sufficient password='it\\'s';"),
        (PLAIN, {"password": "\t\x53\x01z"}, 'optional password="\\t\\123\\1\\z";'),
        (PLAIN, {"password": ""}, 'required password="";'),
        (PLAIN, {"password": "a/*b*/c"}, 'required /* who */ // is it\n password="a/*b*/c";'),
        (PLAIN, {"password": "2"}, "required password=1 password=2;"),
        (
            OAUTHBEARER,
            {"clientId": "me", "clientSecret": "s", "scope": "kafka"},
            'required clientId="me" clientSecret="s" scope="kafka";',
        ),
        (OAUTHBEARER, {}, "required;"),
    ],
)
def test_one_login_module_has_options(name: str, options: dict[str, str], text: str) -> None:
    """It has both quotes, escapes, octal codes, comments and flags in any case, as in Java."""
    assert (name, options) == parse_jaas(f"{name} {text}")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("must end with a semicolon", ""),
        ("must end with a semicolon", f"{PLAIN} required username=hunter2"),
        ("must end with a semicolon", f"{PLAIN} required username="),
        ("not several", f"{PLAIN} required password=hunter2; {SCRAM} required;"),
        ("must begin with a login module and 'required'", ";"),
        ("must begin with a login module and 'required'", f"{PLAIN};"),
        ("must begin with a login module and 'required'", f"{PLAIN} hunter2;"),
        ("must name one of the login modules", "hunter2 required;"),
        ("must name one of the login modules", "com.example.LoginModule required;"),
        ("may only have the options password, username", f"{SCRAM} required tokenauth=hunter2;"),
        ("may only have the options clientId", f"{OAUTHBEARER} required hunter2=x;"),
        ("name=value", f"{PLAIN} required password hunter2;"),
        ("name=value", f"{PLAIN} required password= =;"),
        ("name=value", f"{PLAIN} required password=hunter2 username;"),
        ("name=value", f"{PLAIN} required =hunter2;"),
        ("a quote that isn't closed", f'{PLAIN} required password="hunter2;'),
        ("a slash outside of quotes", f"{PLAIN} required password=hunter2/x;"),
    ],
)
def test_what_is_wrong_is_reported_without_quoting(message: str, text: str) -> None:
    """Any part of the text may be the password, so no part is in the message."""
    with pytest.raises(ValueError, match=message) as refusal:
        parse_jaas(text)
    assert "hunter2" not in str(refusal.value)
