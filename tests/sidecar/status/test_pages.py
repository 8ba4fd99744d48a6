"""The page as HTML: its content, its order, and what it must never contain."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from sidecar.kafka.largest_topics import LogDirTopics, TopicSize
from sidecar.status.inputs import ToolSettings
from sidecar.throttle.limits import MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Contents, Override
from sidecar.throttle.readers import Refusals, RefusedClient, Report, Reserve, ScopedClient
from sidecar.throttle.slope import SlopeRules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FACTORS, TOKEN, FakeSidecar, until
from tests.sidecar.status.outline import Outline, outline
from tests.sidecar.throttle.build import reading, whole, with_rules

EVIL = "<script>alert('x')</script>\" onload=\"y"
LARGEST_BYTES = 64 * 1024


async def _nobody(broker_id: int) -> Mapping[str, LogDirTopics]:
    raise AssertionError(f"nobody runs what asks broker {broker_id}")


def throttled() -> FakeSidecar:
    """A sidecar with a volume at its limit."""
    sidecar = FakeSidecar(ask=_nobody)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 5, "/d2": 50})], silent=[2], fenced=[3]))
    sidecar.read_by(1)
    return sidecar


async def test_the_order() -> None:
    """It is: sentence, volumes, brokers, changes, override, users, a full volume's contents."""
    sidecar = throttled()
    sidecar.board.throttle_users("producer_ids", {"etl": (60.0, "too many")})
    page = await outline(sidecar)
    assert [
        "Throttle of producers",
        "Producers are throttled: /d1 of broker 1 has 5\u00a0B left, the limit is 10\u00a0B. "
        "In addition, 1 single user is throttled.",
        "Volumes",
        "Brokers",
        "Last changes",
        "Override",
        "Single users",
        "Largest topics on /d1 of broker 1",
    ] == page.headings
    words = "etlProducers are throttled until 22:14:20 UTC (in 60 s)too many (producer_ids)"
    assert words in page.words


async def test_what_to_do_leads_to_a_section() -> None:
    """It is that of the volume's contents, which the page has."""
    page = await outline(throttled())
    ids = {attributes.get("id") for _, attributes in page.tags}
    targets = [
        each["href"] for tag, each in page.tags if tag == "a" and "#" in (each["href"] or "")
    ]
    assert ["#contents-1"] == targets
    assert "contents-1" in ids
    assert "What to doFree space: the largest topics" in page.words


async def test_brokers_that_are_not_seen() -> None:
    """One does not answer, with why and since when, and one is fenced."""
    page = await outline(throttled())
    assert "2 were active at the last poll, 22:13:20 UTC (now)." in page.words
    assert "2 host2:9092 does not answer since 22:13:20 UTC (now)no answer within 2 s" in page.words
    assert "3 host3:9092 fenced never" in page.words


async def test_a_broker_that_answers_without_all_sizes() -> None:
    """The page does not say that it is silent, and names the log dir."""
    sidecar = FakeSidecar(ask=_nobody)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50}, unreadable=["/e"])]))
    page = await outline(sidecar)
    assert "1 host1:9092 answers without all sizes since" in page.words
    assert "the sizes of /e can't be read: error 999" in page.words


async def test_a_fenced_broker_that_keeps_the_throttle_on() -> None:
    """The page says how it is forgotten, if it does not come back."""
    sidecar = throttled()
    sidecar.see(whole(1.0, [reading(2, 1.0, {"/e": 50})], fenced=[1]))
    page = await outline(sidecar)
    assert "throttle-sidecar forget 1" in page.words
    assert "had 5\u00a0B left" in page.text


async def test_a_fenced_broker_that_keeps_producers_slowed() -> None:
    """Below the soft limit, the last reading counts as well, and can be forgotten."""
    soft = SlopeRules(MinAvailableBytes(40))
    sidecar = FakeSidecar(factors=with_rules(FACTORS, slope=soft), ask=_nobody)
    low = {"/d": 12}
    sidecar.see(whole(0.0, [reading(1, 0.0, low), reading(2, 0.0, {"/e": 50})]))
    sidecar.see(whole(1.0, [reading(2, 1.0, {"/e": 50})], fenced=[1]))
    page = await outline(sidecar)
    forget = "Its last reading still counts. If it does not come back: throttle-sidecar forget 1"
    assert forget in page.words


async def test_polls_that_fail() -> None:
    """The page says how many in a row, and why the last one did."""
    sidecar = throttled()
    failure = Failure(FailureKind.CONNECT, "nobody listens")
    for _ in range(2):
        sidecar.board.fail(failure)
    assert (
        "The last 2 polls of the cluster failed. nobody listens" in (await outline(sidecar)).words
    )


async def test_it_fills_although_producers_are_throttled() -> None:
    """The page says by how much, when nothing is left, and what is not throttled."""
    sidecar = throttled()
    for now, left in ((6.0, 32), (12.0, 20)):
        sidecar.clock.now = now
        sidecar.see(whole(now, [reading(1, now, {"/d1": left, "/d2": 5})]))
    page = await outline(sidecar)
    assert "A volume fills although producers are throttled" in page.headings
    assert "/d1 of broker 1 fills by 2 B/s, nothing is left in 10 s" in page.words
    assert "partitions being reassigned" in page.words


async def test_a_stop() -> None:
    """The page says that producers are refused, what ends it, and what brokers can do."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableBytes(5)), ask=_nobody)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 5, "/d2": 50})]))
    sidecar.read_by(1, Refusals())
    page = await outline(sidecar)
    assert page.headings[1].startswith("Producers are refused: /d1 of broker 1 has 5\u00a0B left")
    assert "Refuse producers: broker 1 /d1 has 5 B of 100 B" in page.words
    assert "At the stop line, 5 B, brokers refuse producers until every volume" in page.words
    assert "A broker without the authorizer can only pause producers for longer." in page.words
    assert "No stop line is set." not in page.words
    assert 4 == sum(attributes.get("class") == "limit" for _, attributes in page.tags)


async def test_a_soft_limit() -> None:
    """It is a second line in the bar, which says so."""
    slope = SlopeRules(MinAvailableRatio(0.4))
    sidecar = FakeSidecar(factors=with_rules(FACTORS, slope=slope))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 50})]))
    page = await outline(sidecar)
    assert "The lines in each bar are the soft limit, 40.0%, and the limit" in page.words
    (bar,) = (each for _, each in page.tags if each.get("class") == "bar")
    assert "the soft limit at 60.0 %" in (bar["aria-label"] or "")
    assert 2 == sum(attributes.get("class") == "limit" for _, attributes in page.tags)


async def test_a_stop_line_that_is_not_below_the_limit() -> None:
    """The page names a volume, and what is in force there."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableRatio(0.5)))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 60}), reading(2, 0.0, {"/d1": 60})]))
    wrong = "Broker 1 /d1 (100 B), broker 2 /d1 (100 B): the stop line of 50.0% is not below the"
    assert wrong in (await outline(sidecar)).words


async def test_without_a_stop_line_one_is_recommended() -> None:
    """Once a volume was read; a sidecar that is disabled recommends none."""
    setting = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES=5."
    recommended = f"No stop line is set. Recommended: {setting} At"
    assert recommended in (await outline(throttled())).words
    for silent in (FakeSidecar(), FakeSidecar(factors=None)):
        assert "No stop line is set." not in (await outline(silent)).words


async def test_an_override() -> None:
    """The page has its effect, reason and end, what it ignores, and on which brokers it is."""
    sidecar = throttled()
    override = Override(1.0, "a migration", 0.0, 3600.0)
    sidecar.board.set_override(override)
    sidecar.board.readers.record(Report(1, False, 3), sidecar.board.snapshot.generation, 0.0)
    words = (await outline(sidecar)).words
    assert (
        "Nobody is throttled, from 22:13:20 UTC (now) until 23:13:20 UTC (in 60 min). Reason: "
        "“a migration”."
    ) in words
    assert "/d1 of broker 1 has 5 B left" in words
    assert "broker 1 throttles 3 clients, does not wait for changes now (last seen now)" in words


async def test_a_callback_with_a_fault() -> None:
    """The page has the reason, and where to look."""
    sidecar = throttled()
    sidecar.board.readers.record(Report(1, False, 0, "not-asked"), None, 0.0)
    words = (await outline(sidecar)).words
    assert "may not throttle all clients (not-asked), see its log" in words
    assert "has refused" not in words


async def test_a_broker_on_its_reserve() -> None:
    """The page has where it started from its reserve; a reserve that is there is not mentioned."""
    sidecar = throttled()
    reserves = (Reserve("/d0", 8), Reserve("/d1", 0), Reserve("/d2", 0))
    sidecar.board.readers.record(Report(1, False, 0, reserves=reserves), None, 0.0)
    words = (await outline(sidecar)).words
    assert "throttles nobody, started from its reserve on /d1, /d2: make room now, has" in words


async def test_brokers_that_refuse() -> None:
    """The page has how many requests it was and is, why, and of whom most of all brokers."""
    sidecar = throttled()
    assert "Refused clients" not in (await outline(sidecar)).words
    for broker, etl, at in ((1, 900, 0.0), (1, 1000, 10.0), (2, 200, 10.0)):
        clients = (RefusedClient("bob", "<app>", 500), RefusedClient("etl", "", etl))
        refusals = Refusals(200 + etl, 0, 34, clients, logged=broker == 1)
        sidecar.board.readers.record(Report(broker, False, 0, refusals=refusals), None, at)
    words = (await outline(sidecar)).words
    does = "throttles nobody, has refused 1,234 requests since its start, refuses 10.0 a second of "
    assert f"{does}new connections" in words
    assert "UserClient-idRequestsPer second now etl1,20010.0 bob<app>1,0000.0" in words
    assert 1 == words.count("logs an error for each request that it refuses")


async def test_clients_in_scope() -> None:
    """Those of each broker, that land most first; a broker that sees no topics throttles all.

    That is said before a volume is full, and not where all are to be throttled.
    """
    sidecar = FakeSidecar(factors=replace(FACTORS, is_of_volumes=True), ask=_nobody)
    refused = "would throttle all clients for a full volume, since it has no authorizer"
    for early, count in ((sidecar, 1), (FakeSidecar(ask=_nobody), 0)):
        early.see(whole(0.0, [reading(1, 0.0, {"/d1": 50})]))
        early.board.readers.record(Report(2, False, 0), None, 0.0)
        assert count == (await outline(early)).words.count(refused)
    topics = {(1, "/d1"): Contents(frozenset({"orders"}), 0.0)}
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 5})]))
    sidecar.board.update(lambda memory: replace(memory, contents=topics))
    for at in (0.0, 10.0):
        clients = (ScopedClient("bob", "<app>", 50), ScopedClient("etl", "", int(at) * 20_000))
        report = Report(1, False, 1, refusals=Refusals(), in_scope=clients)
        sidecar.board.readers.record(report, None, at)
    sidecar.board.readers.record(Report(2, False, 1), None, 10.0)
    words = (await outline(sidecar)).words
    assert "BrokerUserClient-idWrites now 1etl20.0 kB/s 1bob<app>0 B/s" in words
    assert 1 == words.count(refused)
    assert f"broker 2 throttles 1 client, {refused}" in words


async def test_no_broker_follows() -> None:
    """A factor that nobody reads throttles nobody: the page says so."""
    page = await outline(FakeSidecar())
    assert "No broker's quota callback has read this sidecar's factor" in page.words


async def test_without_a_token() -> None:
    """Changes are refused, and the page says how to allow them; no form goes further."""
    sidecar = throttled()
    sidecar.takes(None)
    page = await outline(sidecar)
    assert "name it in SIDECAR_TOKEN_FILE, and restart the sidecar" in page.words
    assert [] == [tag for tag in page.tags if tag[1].get("href") == "/override"]


async def test_disabled() -> None:
    """Nothing is polled: there are no volumes, and nothing to set."""
    page = await outline(FakeSidecar(factors=None))
    assert "No volume is read" in page.words
    assert [] == [tag for tag in page.tags if tag[1].get("href") == "/override"]


async def test_a_sidecar_that_only_observes() -> None:
    """The page says what would be, of single users too, and has nothing to set."""
    sidecar = FakeSidecar(factors=replace(FACTORS, is_enforced=False))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    sidecar.board.throttle_users("producer_ids", {"bob": (60.0, "too many")})
    page = await outline(sidecar)
    assert "No factor can be set in observe mode." in page.words
    assert "Observe mode: throttle producers: broker 1 /d has 5 B" in page.words
    assert "Observe mode: none of these factors applies" in page.words
    assert [] == [tag for tag in page.tags if tag[1].get("href") == "/override"]


async def test_nothing_is_loaded_from_elsewhere_and_nothing_is_inline() -> None:
    """Each address is one of the sidecar's own; the page has no style, handler or script."""
    for path in ("/", "/volumes", "/override", "/override/end", "/status/parts"):
        page = await outline(throttled(), path)
        for tag, attributes in page.tags:
            assert not [name for name in attributes if name == "style" or name.startswith("on")]
            assert "style" != tag
            for name in ("href", "src", "action"):
                assert (attributes.get(name) or "/").startswith(("/", "#"))
            if tag == "script":
                assert re.fullmatch(r"/status/page\.js\?v=[0-9a-f]{12}", attributes["src"] or "")


async def test_the_headers() -> None:
    """Their policy forbids what the page does not need, and storing."""
    response = await throttled().get("/")
    assert (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ) == response.headers["content-security-policy"]
    assert "no-store" == response.headers["cache-control"]
    assert "same-origin" == response.headers["referrer-policy"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("page.css", "text/css"), ("page.js", "text/javascript"), ("icon.svg", "image/svg+xml")],
)
async def test_files(name: str, kind: str) -> None:
    """Browsers cache them for good, since their addresses change with them."""
    response = await FakeSidecar().get(f"/status/{name}")
    assert (200, kind) == (response.status_code, response.headers["content-type"].split(";")[0])
    assert "immutable" in response.headers["cache-control"]


async def test_names_are_only_text() -> None:
    """Log dirs, reasons, failures, users and topics come from outside: none becomes markup."""
    sidecar = FakeSidecar(ask=_nobody)
    sidecar.see(whole(0.0, [reading(1, 0.0, {f"/{EVIL}": 5})], silent=[2]))
    sidecar.board.set_override(Override(1.0, EVIL, 0.0, 60.0))
    sidecar.board.throttle_users("producer_ids", {EVIL: (60.0, EVIL)})
    sidecar.board.fail(Failure(FailureKind.CONNECT, EVIL))
    response = await sidecar.get("/")
    assert "<script>alert" not in response.text
    assert ' onload="' not in response.text
    assert response.text.count("alert(&#39;x&#39;)") > 5


async def test_topics_and_their_commands() -> None:
    """They have size and share; the broker's text stays text, also within a command."""
    topics = LogDirTopics(2, 80, (TopicSize(EVIL, 60, (0, 1), 30),))

    async def ask(_: int) -> Mapping[str, LogDirTopics]:
        return {"/d": topics}

    sidecar = FakeSidecar(ask=ask)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5}), reading(2, 0.0, {"/d": 90})]))
    contents = sidecar.contents
    assert contents is not None
    task = asyncio.create_task(contents.run())
    first = await sidecar.get("/")
    assert "The broker is being read, since this page is open." in first.text
    assert "data-asking" in first.text
    await until(lambda: contents.request(1) is not None)
    response = await sidecar.get("/")
    task.cancel()
    words = Outline(response.text).words
    assert f"{EVIL} 60 B 75.0 %, 2 partitions" in words
    assert "1 other topic has 20 B there." in words
    assert "being read" not in response.text
    assert "data-asking" not in response.text
    assert "kafka-delete-records.sh --bootstrap-server" in response.text
    assert "<script>alert" not in response.text
    assert ' onload="' not in response.text


async def test_commands_for_strimzi() -> None:
    """The volume can grow first, and the page says when Kafka frees the space."""

    async def ask(_: int) -> Mapping[str, LogDirTopics]:
        return {"/d": LogDirTopics(1, 80, (TopicSize("etl", 60, (0,), 30),))}

    tools = ToolSettings("strimzi", (), ("security.protocol=SSL",))
    sidecar = FakeSidecar(ask=ask, tools=tools)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    contents = sidecar.contents
    assert contents is not None
    task = asyncio.create_task(contents.run())
    await until(lambda: contents.request(1) is not None)
    page = await outline(sidecar)
    task.cancel()
    places = [
        page.words.index(text)
        for text in (
            "Grow the volume to 1 GiB",
            "kubectl patch kafkanodepool",
            "kubectl patch kafkatopic",
            "kafka-configs.sh --bootstrap-server host1:9092 --command-config admin.properties",
            "The active segment stays",
            "admin.properties needs security.protocol=SSL",
        )
    ]
    assert sorted(places) == places


@pytest.mark.slow
async def test_a_thousand_volumes() -> None:
    """The worst are on the page, which stays small; the others are on pages of their own."""
    sidecar = FakeSidecar()
    sidecar.see(
        whole(
            0.0,
            [reading(b, 0.0, {f"/d{n}": 20 + (b + n) % 70 for n in range(10)}) for b in range(100)],
        )
    )
    response = await sidecar.get("/")
    assert 20 == response.text.count('<th scope="row">')
    assert "All 1,000 volumes" in response.text
    assert len(response.content) < LARGEST_BYTES
    found: list[str] = []
    for number in range(1, 11):
        page = (await sidecar.get(f"/volumes?page={number}")).text
        assert f"Page {number} of 10" in page
        found += re.findall(r"/<wbr>(d\d)</span> <span class=\"dim\">of broker (\d+)", page)
    assert 1000 == len(set(found)) == len(found)


@pytest.mark.parametrize("number", ["0", "-1", "x", "", "9" * 30, "9" * 4301, "²"])
async def test_pages_that_are_none(number: str) -> None:
    """Nothing fails by what stands in an address."""
    response = await throttled().get(f"/volumes?page={number}")
    assert 200 == response.status_code


async def test_the_parts_are_of_the_page() -> None:
    """What an open page takes anew is what it was made with, with the ETag that it waits by."""
    sidecar = throttled()
    page, parts = await sidecar.get("/"), await sidecar.get("/status/parts")
    assert parts.text.strip() in page.text
    assert f'data-etag="{sidecar.board.etag}"' in parts.text


async def test_it_costs_no_request_and_changes_nothing() -> None:
    """Looking at the page leaves the board as it was, and the token is nowhere in it."""
    sidecar = throttled()
    before = sidecar.board.snapshot
    for path in ("/", "/volumes", "/override", "/override/end"):
        assert TOKEN not in (await sidecar.get(path)).text
    assert before is sidecar.board.snapshot
    assert [] == sidecar.disk.written


async def test_former_credentials_that_are_used() -> None:
    """The page shows why the broker refuses the new ones, and warns of a restart."""
    refusals = [""]
    sidecar = FakeSidecar(refusal=lambda: refusals[0])
    link = "/runbooks/KafkaThrottleFormerCredentials"
    assert link not in (await sidecar.get("/")).text
    refusals[0] = "b1:9092: the login was refused"
    page = (await sidecar.get("/")).text
    assert "b1:9092: the login was refused. The broker still accepts the former password" in page
    assert "restart" in page
    assert 1 == page.count(f'href="{link}"')
    sidecar.tokens.replace("other", ends_former=False)
    assert await sidecar.tokens.accept(TOKEN.encode())
    assert "A client used the former token" in (await sidecar.get("/")).text
