"""The runbooks as pages, and the page's links to them."""

import re
from pathlib import Path

import pytest

from sidecar.status import runbooks
from sidecar.status.fitting import of_decision, of_failed_polls, of_failure, of_reader
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Override
from sidecar.throttle.readers import Refusals, Report, Reserve
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FACTORS, FakeSidecar
from tests.sidecar.status.outline import outline
from tests.sidecar.throttle.build import reading, whole, with_rules
from tests.support.examples import mostly_slow

FILES = {
    file.stem: file.read_text(encoding="utf-8")
    for file in sorted((Path(__file__).parents[3] / "docs" / "runbooks").glob("K*.md"))
}
LINK = re.compile(r'href="/runbooks/([^"#]*)(?:#([^"]*))?"')
FULL = whole(0.0, [reading(1, 0.0, {"/d": 5})])


@pytest.mark.parametrize("name", mostly_slow(FILES, 3))
async def test_each_file_is_a_page(name: str) -> None:
    """It has the file's headings, commands and links, and may end in .md, as alerts may link it."""
    sidecar = FakeSidecar()
    response = await sidecar.get(f"/runbooks/{name}")
    assert (200, "text/html; charset=utf-8") == (
        response.status_code,
        response.headers["content-type"],
    )
    source = FILES[name]
    headings = re.findall(r"<h[123] id=.*?>(.*?)</h[123]>", response.text)
    assert re.findall(r"^#+ (.*)$", source, re.MULTILINE) == headings
    assert source.count("```sh") == response.text.count("<pre>")
    assert response.text == (await sidecar.get(f"/runbooks/{name}.md")).text


@pytest.mark.slow
async def test_links_between_runbooks_lead_somewhere() -> None:
    """They lead to pages and headings that are served; other documents are named by their path."""
    sidecar = FakeSidecar()
    found = 0
    for name in ("", *runbooks.names()):
        text = (await sidecar.get(f"/runbooks/{name}")).text
        assert ".md)" not in text
        assert 'href=".' not in text
        for target, heading in LINK.findall(text):
            page = await sidecar.get(f"/runbooks/{target}")
            assert 200 == page.status_code, (name, target)
            assert not heading or f'id="{heading}"' in page.text, (name, target, heading)
            found += 1
    assert found > 50
    text = (await sidecar.get("/runbooks/KafkaThrottleCallbackFaulty")).text
    assert "a tested one [docs/quota-callback.md]?" in text


@pytest.mark.parametrize("path", ["/runbooks", "/runbooks/"])
async def test_the_list(path: str) -> None:
    """It has every runbook, and says where to type their commands."""
    text = (await FakeSidecar().get(path)).text
    assert 'id="where-to-type-commands"' in text
    assert [*FILES] == re.findall(r'<li><a href="/runbooks/(.*?)">', text)


@pytest.mark.parametrize(
    "name",
    ["KafkaNothing", "README", "../alerts", "..%2Falerts", "%2Fetc%2Fpasswd", "<b>", "a/b"],
)
async def test_no_other_file_is_served(name: str) -> None:
    """An unknown name has the list of all runbooks; a path leads nowhere."""
    response = await FakeSidecar().get(f"/runbooks/{name}")
    assert 404 == response.status_code
    assert "root:" not in response.text
    assert "<b>" not in response.text
    if name == "KafkaNothing":
        assert "No runbook has this name." in response.text
        assert 'href="/runbooks/KafkaThrottleFlaps"' in response.text


async def test_a_runbook_is_as_safe_as_the_page() -> None:
    """It has the same headers, and HTML in its Markdown would stay text."""
    page, runbook = [
        (await FakeSidecar().get(path)).headers for path in ("/", "/runbooks/KafkaThrottleFlaps")
    ]
    assert {**page, "content-length": ""} == {**runbook, "content-length": ""}
    assert "&lt;script&gt;" in runbooks._html("<script>x</script>")
    assert "href" not in runbooks._html("[x](javascript:alert)")


def sidecar_with(state: str) -> FakeSidecar:
    """A sidecar in a state; broker 1 reads it, unless the state is "unread"."""
    factors = with_rules(FACTORS, stop_line=MinAvailableBytes(3))
    sidecar = FakeSidecar(factors=factors)
    if state != "unread":
        sidecar.read_by(1)
    if state == "free":
        sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    elif state != "blind":
        sidecar.see(FULL)
    if state == "stop line":
        sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 2})]))
    if state == "offline":
        sidecar.see(whole(0.0, [reading(1, 0.0, offline=["/d"])]))
    if state == "override":
        sidecar.board.set_override(Override(1.0, "x", 0.0, 60.0))
    if state == "users":
        sidecar.board.throttle_users("producer_ids", {"etl": (60.0, "too many")})
    return sidecar


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("free", []),
        ("full", ["KafkaProducersThrottled"]),
        ("stop line", ["KafkaStopLineReached"]),
        ("offline", ["KafkaFullLogDirOffline"]),
        ("override", ["KafkaThrottleOverrideLeftOn"]),
        ("blind", ["KafkaThrottleFallback"]),
        ("unread", ["KafkaThrottleCallbackSilent", "KafkaProducersThrottled"]),
        ("users", ["KafkaProducersThrottled", "KafkaProducerIdQuotaExceeded"]),
    ],
)
async def test_the_headline_links_to_what_fits(state: str, expected: list[str]) -> None:
    """Each has its page; without a reader, the first thing to do is to find one."""
    sidecar = sidecar_with(state)
    counts = sidecar.board.readers.counts(0.0)
    assert expected == [*of_decision(sidecar.board.snapshot, counts)]
    page = (await sidecar.get("/")).text
    head = page[page.index('id="head"') : page.index('id="volumes"')]
    assert expected == [name for name, _ in LINK.findall(head)]
    assert set(expected) <= set(runbooks.names())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FailureKind.TIMEOUT, "KafkaThrottleNoObservation"),
        (FailureKind.UNREADABLE_LOG_DIR, "KafkaThrottleLogDirUnreadable"),
        (FailureKind.SHARED_ADDRESS, "KafkaThrottleSharedAddress"),
        (FailureKind.OTHER_CLUSTER, "KafkaThrottleOtherCluster"),
    ],
)
async def test_failed_polls_link_to_what_fits(kind: FailureKind, expected: str) -> None:
    """They do by the kind of failure, of the poll or of a broker."""
    sidecar = sidecar_with("free")
    assert "" == of_failed_polls(sidecar.board.snapshot.memory)
    sidecar.board.fail(Failure(kind, "it failed"))
    assert expected == of_failed_polls(sidecar.board.snapshot.memory)
    page = (await sidecar.get("/")).text
    assert f'it failed Runbook: <a href="/runbooks/{expected}">' in page
    assert expected in runbooks.names()
    assert of_failure(Failure(kind, "")) in {expected, ""}


def test_what_a_callback_reports_links_to_what_fits() -> None:
    """A fault, an emergency, logged refusals and a released reserve have runbooks."""
    assert [] == [*of_reader(Report(1, False, 0, reserves=(Reserve("/d", 8),)))]
    assert [] == [*of_reader(Report(1, False, 0, None, Refusals()))]
    reserves = (Reserve("/d", 8), Reserve("/e", 0))
    report = Report(1, True, 0, "not-asked", Refusals(logged=True), reserves=reserves)
    found = [*of_reader(report)]
    assert [
        "KafkaThrottleCallbackFaulty",
        "KafkaVolumeReserveReleased",
        "KafkaThrottleEmergencyPauses",
        "KafkaThrottleRefusalsLogged",
    ] == found
    assert set(found) <= set(runbooks.names())


@pytest.mark.parametrize(
    ("fenced", "is_read", "expected"), [([2], True, 1), ([], True, 0), ([2], False, 0)]
)
async def test_a_fenced_broker_where_callbacks_are(
    fenced: list[int], is_read: bool, expected: int
) -> None:
    """Other brokers may log errors (KAFKA-20746); without a callback, none does."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})], fenced=fenced))
    if is_read:
        sidecar.read_by(1)
    page = await outline(sidecar)
    assert expected == page.text.count("may log a NullPointerException")
    assert "KAFKA-20746" in runbooks.names()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "named"),
    [
        (None, "1"),
        ("3.9.1", ""),
        ("4.0.0", "1 (Kafka 4.0.0)"),
        ("4.2.1", "1 (Kafka 4.2.1)"),
        ("4.2.2", ""),
        ("4.3.1-rc0", "1 (Kafka 4.3.1-rc0)"),
        ("4.3.2", ""),
        ("4.4.0", ""),
    ],
)
async def test_the_page_names_brokers_whose_version_has_the_fault(
    version: str | None, named: str
) -> None:
    """An older jar does not report the version, so its broker may have it."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})], fenced=[2]))
    sidecar.board.readers.record(Report(1, False, 0, kafka_version=version), None, 0.0)
    page = await outline(sidecar)
    shown = f"by their version of Kafka: {named}. Runbook: KAFKA-20746" if named else ""
    assert shown in page.text
    assert bool(named) == ("NullPointerException" in page.text)
