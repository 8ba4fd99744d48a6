"""The findings about a whole installation, and about broken ones."""

from dataclasses import replace

import pytest

from sidecar.cli.doctor import broker_findings
from sidecar.cli.doctor.facts import Alerts, Broker, Facts, NotKnown, Refused, Sidecar
from sidecar.cli.doctor.findings import findings
from sidecar.cli.doctor.verdicts import exit_code, worst
from sidecar.client_quotas.plan import Found
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.kept_originals import Kept
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from tests.sidecar.cli.doctor.installation import (
    CONFIGS,
    FACTOR,
    GB,
    LIMITS,
    WHOLE,
    reader,
    sidecar,
    volume,
)

Bad = set[tuple[str, str]]


def bad(facts: Facts) -> Bad:
    """Name and verdict of what is not OK."""
    return {(each.name, each.verdict) for each in findings(facts) if each.verdict != "ok"}


def text(facts: Facts) -> str:
    """All sentences and what to do."""
    return "\n".join(f"{each.what} -> {each.to_do}" for each in findings(facts))


def without_reader(facts: Facts, *changed: Sidecar) -> Facts:
    """Broker 2 reads no sidecar."""
    return replace(facts, sidecars=(*facts.sidecars[:2], *changed, sidecar(2, readers=())))


def test_a_whole_installation_is_ok() -> None:
    """Each part has a row, nothing is to be done, and the exit code is 0."""
    found = findings(WHOLE)
    assert set() == bad(WHOLE)
    assert [""] == sorted({each.to_do for each in found})
    assert 0 == exit_code(found)
    assert "brokers 0, 1, 2 throttle their producers within 79 s" in found[-1].what


OLD = replace(WHOLE.brokers[2], configs={**CONFIGS, "client.quota.callback.class": None})
UNREACHED = replace(WHOLE.brokers[1], problem="no answer within 10 s")
BLIND = tuple(Broker(each, configs=NotKnown("it is refused")) for each in range(3))
LATE = reader(2, waiting=False)
OTHER_LIMITS = {**LIMITS, "limit": {"type": "min_available_bytes", "value": 5.0 * GB}}
TOO_SMALL = replace(volume(0), limit_bytes=2000 * GB)
OTHER_AUTHORIZER = {**CONFIGS, "authorizer.class.name": "example.Authorizer"}
SILENT = NotKnown("no broker reported the list")
QUICK = tuple(volume(each, rate=1 * GB) for each in range(3))


@pytest.mark.parametrize(
    ("facts", "expected", "sentence"),
    [
        pytest.param(
            without_reader(replace(WHOLE, brokers=(*WHOLE.brokers[:2], OLD))),
            {("callback", "fail"), ("authorizer", "not known"), ("jar", "not known")}
            | {("effect", "fail")},
            "broker 2 has no quota callback and throttles nobody -> run throttle-sidecar callback",
            id="1 a broker without the callback",
        ),
        pytest.param(
            without_reader(WHOLE),
            {("callback", "fail"), ("authorizer", "not known"), ("jar", "not known")}
            | {("effect", "fail")},
            "broker 2 has the callback, but has read none of the 3 sidecars that answered",
            id="2 a callback with a wrong address",
        ),
        pytest.param(
            replace(WHOLE, brokers=(WHOLE.brokers[0], UNREACHED, WHOLE.brokers[2])),
            {("brokers", "fail")},
            "broker 1 can't be read: no answer within 10 s",
            id="3 a broker that is not reached",
        ),
        pytest.param(
            replace(WHOLE, brokers=BLIND, rights=frozenset({"Describe"})),
            {("ACLs", "warn"), ("retention", "not known")},
            "--allow-principal User:throttle-sidecar --operation DescribeConfigs --cluster",
            id="4 a missing ACL",
        ),
        pytest.param(
            replace(
                WHOLE,
                sidecars=(
                    *WHOLE.sidecars[:2],
                    sidecar(2, limits=OTHER_LIMITS),
                ),
            ),
            {("equal limits", "fail")},
            "http://b2:7070: limit min_available_bytes=5000000000, stop line",
            id="5 sidecars with different limits",
        ),
        pytest.param(
            replace(WHOLE, sidecars=(sidecar(0, token="refused"), *WHOLE.sidecars[1:])),
            {("token", "fail")},
            "another token than in SIDECAR_TOKEN_FILE here is needed by http://b0:7070",
            id="6 a wrong token",
        ),
        pytest.param(
            replace(WHOLE, volumes=QUICK),
            {("interval", "fail"), ("volumes", "warn")},
            "60.0 GB in an interval of 60 s",
            id="7 a limit that is smaller than an interval's writing",
        ),
        pytest.param(
            replace(WHOLE, sidecars=(sidecar(0, clock_ahead_s=-90.0), *WHOLE.sidecars[1:])),
            {("clocks", "warn")},
            "http://b0:7070 is 90 s behind this machine",
            id="8 a clock that is late",
        ),
        pytest.param(
            replace(
                WHOLE,
                sidecars=(
                    sidecar(0, readers=(reader(0, jar_version=None),)),
                    sidecar(1, version="0.0.9"),
                    WHOLE.sidecars[2],
                ),
            ),
            {("jar", "warn"), ("sidecars", "warn")},
            "broker 0 has a jar that reports no version; this program is 0.1.0",
            id="9 an older jar and an older sidecar",
        ),
        pytest.param(
            replace(WHOLE, alerts=Alerts(frozenset({"KafkaThrottleFallback"}), 1)),
            {("alerts", "warn")},
            "Prometheus scrapes 1 sidecars; 3 were asked here",
            id="10 an alert that is not loaded, and sidecars that are not scraped",
        ),
        pytest.param(
            replace(
                WHOLE,
                brokers=tuple(
                    Broker(each, configs={**CONFIGS, "log.retention.check.interval.ms": "3600000"})
                    for each in range(3)
                ),
                partitions={(0, "/data"): 900},
            ),
            {("retention", "warn"), ("segments", "warn")},
            "deleted segments free space up to 3660 s later -> lower log.retention.check",
            id="11 retention that frees space slowly",
        ),
        pytest.param(
            replace(
                WHOLE,
                sidecars=tuple(
                    sidecar(each, factor={**FACTOR, "shadow": {"factor": 0.0}}) for each in range(3)
                ),
            ),
            {("effect", "warn")},
            "if a volume reaches its limit now, nobody is throttled: the sidecars are in",
            id="12 sidecars that observe",
        ),
        pytest.param(
            replace(WHOLE, sidecars=(*WHOLE.sidecars[:2], sidecar(2, readers=(LATE,)))),
            {("callback", "fail"), ("effect", "fail")},
            "broker 2 has read a sidecar at 2026-11-21T00:52:40.017Z, but does not wait there now",
            id="15 a callback that has stopped",
        ),
        pytest.param(
            replace(
                WHOLE,
                cluster_id="A",
                sidecars=tuple(
                    sidecar(each, factor={**FACTOR, "cluster_id": "B"}, failure="other cluster")
                    for each in range(3)
                ),
            ),
            {("sidecars", "fail"), ("equal limits", "fail"), ("effect", "not known")},
            "these settings and the sidecars lead to different clusters: A, B",
            id="16 sidecars with the state file of another cluster",
        ),
        pytest.param(
            replace(WHOLE, volumes=(volume(0, 20 * GB), volume(1, 39 * GB), volume(2))),
            {("volumes", "fail")},
            "broker 0 /data has 20.0 GB available, at or below the stop line of 20.0 GB",
            id="13 full volumes",
        ),
        pytest.param(
            replace(
                WHOLE,
                state_file=None,
                file_problems=("SIDECAR_TOKEN_FILE: no such file",),
                timing=Timing(600.0, 1.0),
            ),
            {("files", "fail"), ("state file", "warn")},
            'SIDECAR_TOKEN_FILE: no such file -> mend it: "run" does not start',
            id="14 files that are missing",
        ),
        pytest.param(
            replace(
                WHOLE,
                brokers=(*WHOLE.brokers[:2], OLD),
                sidecars=(*WHOLE.sidecars[:2], sidecar(2, readers=(LATE,))),
            ),
            {("callback", "fail"), ("effect", "fail")},
            "broker 2 has no quota callback and throttles nobody -> run throttle-sidecar callback",
            id="17 a callback that was removed",
        ),
        pytest.param(
            replace(WHOLE, alerts=NotKnown("Prometheus at http://p:9090: Connection refused")),
            {("alerts", "not known")},
            "Connection refused -> correct --prometheus, or start it",
            id="18 a Prometheus that does not answer",
        ),
        pytest.param(
            replace(WHOLE, volumes=(TOO_SMALL,), partitions={(0, "/data"): 0}),
            {("volumes", "fail")},
            "at or below the limit of 2.0 TB",
            id="19 a limit that is larger than the volume",
        ),
        pytest.param(
            replace(
                WHOLE,
                brokers=(replace(WHOLE.brokers[0], configs=OTHER_AUTHORIZER), *WHOLE.brokers[1:]),
                sidecars=(sidecar(0, readers=(reader(0, refused=None),)), *WHOLE.sidecars[1:]),
            ),
            {("authorizer", "fail")},
            "so the stop line only lengthens pauses there, and the volume can still fill up",
            id="20 a stop line without the authorizer",
        ),
        pytest.param(
            replace(WHOLE, sidecars=(Sidecar("http://b0:7070", "Connection refused"),)),
            {("callback", "not known"), ("authorizer", "not known"), ("jar", "not known")}
            | {("sidecars", "fail"), ("sidecars", "not known"), ("effect", "not known")},
            "have the callback, but no sidecar answered, so nothing shows whether",
            id="21 no sidecar runs",
        ),
    ],
)
def test_a_broken_installation(facts: Facts, expected: Bad, sentence: str) -> None:
    """Its fault is found with what to do, and nothing else is wrong."""
    assert expected == bad(facts)
    assert sentence in text(facts)


def test_what_was_not_seen_is_never_ok() -> None:
    """Without brokers, sidecars and Prometheus, every row but two is "fail" or "not known"."""
    nothing = Facts(
        version="0.1.0",
        target="b0:9092",
        principal="NAME",
        rules=WHOLE.rules,
        timing=WHOLE.timing,
        state_file="/state",
        cluster=SILENT,
        rights=SILENT,
        sidecars=(Sidecar("http://b0:7070", "Connection refused"),),
    )
    found = findings(nothing)
    assert {"settings", "state file"} == {each.name for each in found if each.verdict == "ok"}
    assert "fail" == worst(found)
    assert 2 == exit_code(found)


def test_one_broker_of_a_sidecar_that_was_not_asked() -> None:
    """Its callback may read its own sidecar, so neither it nor the effect fails."""
    facts = replace(WHOLE, sidecars=WHOLE.sidecars[:2], alerts=Alerts(frozenset(), 2))
    expected = {("callback", "not known"), ("authorizer", "not known"), ("jar", "not known")}
    assert expected | {("effect", "not known")} == bad(facts)
    assert 1 == exit_code(findings(facts))


def test_missing_acls_are_granted_where_they_belong() -> None:
    """With Strimzi, that is the KafkaUser. What a missing DESCRIBE hides is not known."""
    topics = Refused("TOPIC_AUTHORIZATION_FAILED")
    facts = replace(WHOLE, rights=frozenset(), topics=topics, is_strimzi=True, alters_quotas=True)
    found = [(each.verdict, each.to_do) for each in findings(facts) if each.name == "ACLs"]
    assert [
        ("fail", "add Describe on cluster to its KafkaUser (strimzi.extraAcls of the chart)"),
        ("not known", "grant Describe first"),
        ("not known", "grant Describe first"),
        ("warn", "add Describe on topic '*' to its KafkaUser (strimzi.extraAcls of the chart)"),
    ] == found


def test_with_aws_iam_policies_grant() -> None:
    """Kafka's ACLs have no effect there."""
    topics = Refused("TOPIC_AUTHORIZATION_FAILED")
    facts = replace(WHOLE, rights=frozenset({"Describe"}), topics=topics, is_iam=True)
    found = [each.to_do for each in findings(facts) if each.name == "ACLs"]
    assert [
        "allow kafka-cluster:DescribeClusterDynamicConfiguration in the sidecar's IAM policy",
        "allow kafka-cluster:DescribeTopic in the sidecar's IAM policy",
    ] == found


STOCK: dict[str, str | None] = {
    **CONFIGS,
    "client.quota.callback.class": None,
    "authorizer.class.name": None,
    "quota.window.num": "11",
    "quota.window.size.seconds": "1",
}
ALICE, REST = Entity("alice"), Entity(client_id=DEFAULT)
LEFT = Found({ALICE: 8559249.0}, {ALICE: Kept(1e7, 1e7)})
LOWERING = replace(
    WHOLE,
    enforcement="client-quotas",
    rules=Rules(WHOLE.rules.limit, 300.0),
    brokers=tuple(Broker(each, configs=STOCK, kafka="4.0 or newer") for each in range(3)),
    rights=frozenset({"Describe", "DescribeConfigs", "AlterConfigs"}),
    quotas=Found({ALICE: 1e7}, {}),
    sidecars=tuple(
        sidecar(each, readers=(), limits={**LIMITS, "stop_line": None}) for each in range(3)
    ),
)
"""The same cluster without a jar."""
THROTTLING = tuple(replace(each, factor={**FACTOR, "factor": 0.5}) for each in LOWERING.sidecars)
EARLY = tuple(replace(each, factor={**FACTOR, "lowered_quotas": 1}) for each in LOWERING.sidecars)
OBSERVING = tuple(replace(each, factor={**each.factor, "shadow": 0.0}) for each in EARLY)
LONG = replace(LOWERING.brokers[2], configs={**STOCK, "quota.window.num": "30"})
FOREIGN = replace(LOWERING.brokers[1], configs={**STOCK, "client.quota.callback.class": "a.B"})


def test_without_a_jar_all_is_ok_too() -> None:
    """Nobody misses the callback; the effect says who is throttled how."""
    found = findings(LOWERING)
    assert set() == bad(LOWERING)
    assert not {"callback", "authorizer", "jar"} & {each.name for each in found}
    what = found[-1].what
    assert "produce quotas fall every 6 s, after 60 s at most, down to 512Ki a second" in what
    assert what.endswith("user 'alice' (10.0 MB/s before), client-id the default (none before)")


@pytest.mark.parametrize(
    ("facts", "expected", "sentence"),
    [
        pytest.param(
            replace(LOWERING, rights=WHOLE.rights),
            {("ACLs", "fail"), ("effect", "fail")},
            "nobody is throttled: the sidecar lacks AlterConfigs on the cluster",
            id="a missing right to set quotas",
        ),
        pytest.param(
            replace(
                LOWERING,
                rights=frozenset({"Describe", "AlterConfigs"}),
                brokers=tuple(replace(each, kafka="4.0 or newer") for each in BLIND),
                quotas=NotKnown("it is refused"),
            ),
            {("ACLs", "fail"), ("quota window", "not known"), ("lowered quotas", "not known")}
            | {("retention", "not known"), ("effect", "fail")},
            "DescribeConfigs on the cluster is missing: the sidecar can't read quotas",
            id="a missing right to read quotas",
        ),
        pytest.param(
            replace(LOWERING, brokers=(*LOWERING.brokers[:2], LONG)),
            {("quota window", "fail")},
            "broker 2 has quota.window.num=30, so clients may wait for longer than 6 s"
            " -> set quota.window.num=11 and restart",
            id="longer windows",
        ),
        pytest.param(
            replace(LOWERING, brokers=(LOWERING.brokers[0], FOREIGN, LOWERING.brokers[2])),
            {("callback", "warn")},
            "broker 1 has client.quota.callback.class=a.B, which may ignore Kafka's quotas",
            id="a callback that decides quotas",
        ),
        pytest.param(
            replace(LOWERING, quotas=LEFT),
            {("lowered quotas", "warn")},
            "not restored: user 'alice' (10.0 MB/s before), though no sidecar throttles -> a",
            id="originals while nothing is throttled",
        ),
        pytest.param(
            replace(LOWERING, quotas=LEFT, sidecars=THROTTLING),
            {("sidecars", "warn")},
            "not restored: user 'alice' (10.0 MB/s before); a sidecar throttles",
            id="originals while quotas are lowered",
        ),
        pytest.param(
            replace(LOWERING, quotas=LEFT, sidecars=EARLY),
            set(),
            "not restored: user 'alice' (10.0 MB/s before); a sidecar throttles",
            id="originals while quotas are lowered before a limit",
        ),
        pytest.param(
            replace(LOWERING, quotas=LEFT, sidecars=OBSERVING, observes=True),
            {("lowered quotas", "warn"), ("effect", "warn")},
            "(10.0 MB/s before), and observe mode restores nothing -> run",
            id="originals in observe mode",
        ),
        pytest.param(
            replace(
                WHOLE,
                quotas=LEFT,
                sidecars=(*WHOLE.sidecars[:2], sidecar(2, factor={**FACTOR, "factor": 0.5})),
            ),
            {("lowered quotas", "warn"), ("sidecars", "warn")},
            "though SIDECAR_ENFORCEMENT is callback",
            id="originals of an earlier enforcement",
        ),
        pytest.param(
            replace(LOWERING, quotas=Found({ALICE: 1e5, REST: 1e5}, {})),
            {("effect", "warn")},
            "nobody is throttled: no produce quota is above the floor of 512Ki",
            id="quotas below the floor",
        ),
        pytest.param(
            replace(LOWERING, rules=WHOLE.rules, sidecars=WHOLE.sidecars),
            {("stop line", "warn")},
            "at the stop line producers get the floor",
            id="a stop line",
        ),
        pytest.param(
            replace(LOWERING, by_acls=False, rights=WHOLE.rights),
            set(),
            "produce quotas fall every 6 s",
            id="a platform's own API, which needs no right to set quotas",
        ),
        pytest.param(
            replace(LOWERING, metrics={0: 3e6, 1: 0.0, 2: NotKnown("it answers 404")}),
            {("broker metrics", "not known"), ("broker metrics", "warn")},
            "broker 2 has metrics that can't be read: it answers 404; quotas begin by fill rates",
            id="metrics that can't be read, and others that show no client",
        ),
        pytest.param(
            replace(LOWERING, metrics={0: 3e6, 1: 3e6}),
            {("broker metrics", "warn")},
            "broker 2 has no address for metrics; quotas begin by fill rates",
            id="a broker whose metrics have no address",
        ),
        pytest.param(
            replace(LOWERING, enforcement="none"),
            set(),
            "if a volume reaches its limit now, nobody is throttled: SIDECAR_ENFORCEMENT is none",
            id="no enforcement",
        ),
    ],
)
def test_enforcement_without_a_jar(facts: Facts, expected: Bad, sentence: str) -> None:
    """What keeps quotas from being lowered, or from being restored, is found."""
    assert expected == bad(facts)
    assert sentence in text(facts)


def test_the_user_of_an_acl_is_quoted() -> None:
    """A shell would grant the rights to another user, or run what follows "&"."""
    facts = replace(WHOLE, principal="CN=sidecar,OU=Ops & Infra")
    command = broker_findings.grant(facts, "Describe", "--cluster")
    assert "--allow-principal 'User:CN=sidecar,OU=Ops & Infra' --operation" in command
