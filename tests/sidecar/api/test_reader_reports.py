"""The header Throttle-Reader has one form, and nothing else is accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.api.reader_reports import parse_report
from sidecar.throttle.readers import Refusals, RefusedClient, Report, Reserve, ScopedClient

REPORT = "broker=1; emergency=true; throttled_clients=2"
INT = st.integers(0, 2**31 - 1)
SPACE = st.text(" \t", max_size=3)


def parsed(reader: str, **others: str) -> Report | None:
    """The report in Throttle-Reader and in other headers, by the last word of their names."""
    headers = {"reader": reader, **others}
    return parse_report({f"throttle-{name}": text for name, text in headers.items()})


@given(INT, st.booleans(), INT, st.lists(SPACE, min_size=4, max_size=4))
def test_every_report_is_read_as_it_was_written(
    broker_id: int, emergency: bool, clients: int, spaces: list[str]
) -> None:
    """The numbers and the white space around the semicolons may be any."""
    a, b, c, d = spaces
    said = str(emergency).lower()
    text = f"broker={broker_id}{a};{b}emergency={said}{c};{d}throttled_clients={clients}"
    assert Report(broker_id, emergency, clients) == parsed(text)


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("; fault=not-asked", "not-asked"),
        (" ;\tfault=error; more=7", "error"),
        ("; more=1", None),
    ],
)
def test_a_fault_and_what_later_versions_add(more: str, fault: str | None) -> None:
    """They are read; a member that is not known takes nothing from the others."""
    assert Report(1, True, 2, fault) == parsed(REPORT + more)


@pytest.mark.parametrize(
    ("text", "reserves"),
    [
        ("", ()),
        ("%2Fa%2C%3Ab:8,%2Fc:0", (Reserve("/a,:b", 8), Reserve("/c", 0))),
        ("/a:8,%2Fb:-1,%2Fc,:7,%2Fd:9", (Reserve("/d", 9),)),
    ],
)
def test_reserves(text: str, reserves: tuple[Reserve, ...]) -> None:
    """Each has a log dir and bytes; members of another form are skipped."""
    assert Report(1, True, 2, reserves=reserves) == parsed(REPORT, reserve=text)


def test_names_are_cut() -> None:
    """Anyone can send them, and a broker cuts its own to 64 characters and an ellipsis."""
    longest = "%E2%80%A6" * 65
    report = parsed(
        REPORT,
        refused=f"new_connection=7; stop_line=0; release=20; clients={longest}x/{longest}x:1",
        scope=f"clients={longest}x/{longest}x:2",
        reserve=f"{'%2F' * 255}x:8",
    )
    assert report is not None
    assert report.refusals is not None
    clients: list[RefusedClient | ScopedClient] = [*report.refusals.clients, *report.in_scope]
    assert 2 == len(clients)
    for each in clients:
        assert ("…" * 65, "…" * 65) == (each.principal, each.client_id)
    assert (Reserve("/" * 255, 8),) == report.reserves


COUNTS = "new_connection=7; stop_line=0; release=20"


@pytest.mark.parametrize(
    ("text", "refusals"),
    [
        (COUNTS, Refusals(7, 0, 20)),
        (f"{COUNTS}; more=of later", Refusals(7, 0, 20)),
        (
            f"{COUNTS}; clients=a/b:1; logged=true",
            Refusals(7, 0, 20, (RefusedClient("a", "b", 1),), True),
        ),
        (
            f"{COUNTS}; clients=CN%3Dalice%2C%20O%2F1/a%3A%E2%80%A6:9,/:2; more=1",
            Refusals(
                7, 0, 20, (RefusedClient("CN=alice, O/1", "a:…", 9), RefusedClient("", "", 2))
            ),
        ),
        (
            f"{COUNTS}; clients=not-one,b/c:x,%ff/:1",
            Refusals(7, 0, 20, (RefusedClient("�", "", 1),)),
        ),
        (
            f"{COUNTS}; clients={','.join(['a/b:1'] * 11)}",
            Refusals(7, 0, 20, (RefusedClient("a", "b", 1),) * 10),
        ),
        ("", None),
        (COUNTS.replace("7", "-7"), None),
        (COUNTS.replace("7", "1" * 19), None),
        (f"{COUNTS}; clients=<b>/:1", Refusals(7, 0, 20)),
        (f"{COUNTS}; more={'1' * 20_000}", None),
    ],
)
def test_what_an_authorizer_refused(text: str, refusals: Refusals | None) -> None:
    """Names may be any; what has another form costs nobody the rest of the report."""
    assert Report(1, True, 2, None, refusals) == parsed(REPORT, refused=text)


@pytest.mark.parametrize(
    ("text", "clients"),
    [
        ("clients=a%20b/c:7,/:1", [("a b", "c", 7), ("", "", 1)]),
        ("clients=a/b:7; more=of later", [("a", "b", 7)]),
        (f"clients={','.join(['a/b:1'] * 51)}", [("a", "b", 1)] * 50),
        ("", []),
        ("clients=<b>/:1", []),
        ("clients=a/b:7\n", []),
        (f"clients={'a/b:1,' * 4000}", []),
    ],
)
def test_the_clients_in_scope(text: str, clients: list[tuple[str, str, int]]) -> None:
    """Fifty at most; what has another form costs nobody the rest of the report."""
    expected = Report(1, True, 2, in_scope=tuple(ScopedClient(*each) for each in clients))
    assert expected == parsed(REPORT, scope=text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "broker=1",
        "broker=1; emergency=false",
        "emergency=false; broker=1; throttled_clients=0",
        "broker=1; emergency=false; throttled_clients=0; More=1",
        "broker=1; emergency=false; throttled_clients=0; fault=<b>",
        "broker=1; emergency=false; throttled_clients=0; fault=",
        ", ".join(["broker=1; emergency=false; throttled_clients=0"] * 2),
        "broker=01; emergency=false; throttled_clients=0",
        "broker=+1; emergency=false; throttled_clients=0",
        "broker=-1; emergency=false; throttled_clients=0",
        "broker=1_0; emergency=false; throttled_clients=0",
        "broker=\uff11; emergency=false; throttled_clients=0",
        "broker=2147483648; emergency=false; throttled_clients=0",
        "broker=1; emergency=false; throttled_clients=2147483648",
        "broker=1; emergency=false; throttled_clients=1e3",
        "broker=1; emergency=False; throttled_clients=0",
        "broker=1; emergency=; throttled_clients=0",
        "broker=1; emergency=false; throttled_clients=0\n",
        "broker=1;" + " " * 200 + "emergency=false; throttled_clients=0",
    ],
)
def test_another_form_is_none(text: str) -> None:
    """Parts are missing, more, in another order, out of range, repeated or too long."""
    assert parsed(text) is None


@given(st.text(max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    """Whatever is sent, there is no error and no report by chance."""
    assert parsed(text) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("4.3.1", "4.3.1"),
        ("4.4.0-rc1", "4.4.0-rc1"),
        ("", None),
        ("4.3", None),
        ("4.3.1 <b>", None),
        ("4.3.1" + 50 * "1", None),
    ],
)
def test_the_versions_of_kafka_and_of_the_jar(text: str, version: str | None) -> None:
    """Another form is no version, and the rest of the report counts."""
    assert Report(1, True, 2, kafka_version=version) == parsed(REPORT, kafka=text)
    assert Report(1, True, 2, jar_version=version) == parsed(REPORT, jar=text)
