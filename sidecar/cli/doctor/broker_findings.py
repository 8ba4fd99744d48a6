"""The findings about brokers: reached, ACLs, Kafka's version, callback, authorizer and jar.

Brokers with the same finding share a row.

Example: brokers 0 and 1 have no quota callback, and broker 2 reads its sidecar. The rows are
("callback", "fail", "brokers 0, 1 have no quota callback ...") and ("callback", "ok", "broker 2
reads a sidecar ...").
"""

import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from sidecar.cli.doctor.facts import Broker, Facts, NotKnown, Refused
from sidecar.cli.doctor.verdicts import Finding
from sidecar.formats.iam_actions import iam_action

CALLBACK: Final = "throttlesidecar.SidecarQuotaCallback"
AUTHORIZER: Final = "throttlesidecar.SidecarAuthorizer"

_INSTALL: Final = (
    "run throttle-sidecar callback copy on it, add the two lines of docs/quota-callback.md to its"
    " configuration, and restart it"
)


def broker_findings(facts: Facts) -> Iterator[Finding]:
    """All of them."""
    if facts.cluster is not None:
        yield Finding("brokers", "fail", facts.cluster.why, "mend this first")
    else:
        yield from shared((each, _reached(each)) for each in facts.brokers)
    yield from _rights(facts)
    by_callback = (callback, _authorizer, _jar) if facts.enforcement == "callback" else ()
    for find in (_kafka, *by_callback):
        yield from shared((each, find(facts, each)) for each in facts.active)


def _reached(broker: Broker) -> Finding:
    if broker.fenced:
        return Finding("brokers", "warn", "{are} fenced", "start it, or see GET /v1/brokers")
    if broker.problem:
        return Finding("brokers", "fail", f"can't be read: {broker.problem}", "mend this first")
    return Finding("brokers", "ok", "{are} reached from here")


def _rights(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.rights, NotKnown):
        yield Finding("ACLs", "not known", facts.rights.why, "mend the access to brokers first")
        return
    lowers = facts.enforcement == "client-quotas" and facts.by_acls
    missing = {
        "Describe": "the sidecar can't read volumes",
        "DescribeConfigs": "the sidecar can't read quotas"
        if lowers
        else "brokers' settings can't be read, by this command either",
    }
    if facts.alters_quotas or lowers:
        missing["AlterConfigs"] = "the sidecar can't set quotas"
    for operation, effect in missing.items():
        if operation in facts.rights:
            continue
        if operation != "Describe" and "Describe" not in facts.rights:
            why = f"{operation} on the cluster, because Describe is missing"
            yield Finding("ACLs", "not known", why, "grant Describe first")
            continue
        yield Finding(
            "ACLs",
            "fail" if lowers or operation != "DescribeConfigs" else "warn",
            f"{operation} on the cluster is missing: {effect}",
            grant(facts, operation, "--cluster"),
        )
    if facts.topics is not None:
        is_refused = isinstance(facts.topics, Refused)
        yield Finding(
            "ACLs",
            "warn" if is_refused else "not known",
            f"topics can't be described, so an emergency pauses all brokers: {facts.topics.why}",
            grant(facts, "Describe", "--topic '*'") if is_refused else "mend this first",
        )
    elif missing.keys() <= facts.rights:
        # Without a topic there was nothing to describe.
        tried = not isinstance(facts.partitions, NotKnown) and any(facts.partitions.values())
        on_topics = ", and Describe on topics" if tried else ""
        yield Finding("ACLs", "ok", f"{', '.join(missing)} on the cluster{on_topics}")


def grant(facts: Facts, operation: str, on: str) -> str:
    """How to grant an operation."""
    if facts.is_strimzi:
        return (
            f"add {operation} on {on.strip('-')} to its KafkaUser (strimzi.extraAcls of the chart)"
        )
    if facts.is_iam and (action := iam_action(operation, on)):
        return f"allow {action} in the sidecar's IAM policy"
    return (
        f"kafka-acls.sh --bootstrap-server {facts.target} --add --allow-principal"
        f" {shlex.quote(f'User:{facts.principal}')} --operation {operation} {on}"
    )


def _kafka(facts: Facts, broker: Broker) -> Finding:
    if version := (facts.reader(broker.id) or {}).get("kafka_version"):
        return Finding("Kafka", "ok", f"{{run}} Kafka {version}, by the callback")
    if broker.kafka:
        return Finding("Kafka", "ok", f"{{run}} Kafka {broker.kafka}, by Kafka's protocol")
    return Finding("Kafka", "not known", "{have} an unknown version", "reach it first")


def callback(facts: Facts, broker: Broker) -> Finding:
    """Whether a broker reads a sidecar, so that it throttles its producers."""
    name, report = "callback", facts.reader(broker.id)
    if report is None:
        return _without_report(facts, broker)
    if (absent := _absent(broker)) and not report.get("waiting"):
        return absent
    if fault := report.get("fault"):
        what = f"{{read}} a sidecar, but may not throttle all clients: fault {fault}"
        return Finding(name, "fail", what, "docs/runbooks/KafkaThrottleCallbackFaulty.md")
    if not report.get("waiting"):
        seen = report.get("last_seen")
        what = f"{{have}} read a sidecar at {seen}, but {{do}} not wait there now"
        return Finding(name, "fail", what, "docs/runbooks/KafkaThrottleCallbackSilent.md")
    return Finding(name, "ok", "{read} a sidecar, and {wait} there for changes")


def _absent(broker: Broker) -> Finding | None:
    """Whether the broker's configuration says that it does not have the callback."""
    if isinstance(broker.configs, NotKnown):
        return None
    installed = broker.configs.get("client.quota.callback.class")
    if installed == CALLBACK:
        return None
    what = f"{{have}} another quota callback: {installed}"
    if not installed:
        what = "{have} no quota callback and {throttle} nobody"
    return Finding("callback", "fail", what, _INSTALL)


def _without_report(facts: Facts, broker: Broker) -> Finding:
    if absent := _absent(broker):
        return absent
    name = "callback"
    where = "" if isinstance(broker.configs, NotKnown) else "{have} the callback, but "
    readers = [each for each in facts.answering if each.readers is not None]
    if not readers:
        what = f"{where}no sidecar answered, so nothing shows whether {{read}} one"
        return Finding(name, "not known", what, "mend the sidecars below")
    none = f"{{have}} read none of the {len(readers)} sidecars that answered"
    if len(readers) == 1:
        none = "{have} not read the sidecar that answered"
    if len(readers) < max(len(facts.sidecars), len(facts.active)):
        what = f"{where}{none}; perhaps {{read}} another one"
        return Finding(name, "not known", what, "name every broker's sidecar by --sidecars")
    return Finding(
        name,
        "fail",
        f"{where}{none} in the last 10 minutes",
        "check client.quota.callback.sidecar.url and the broker's log:"
        " docs/runbooks/KafkaThrottleCallbackSilent.md",
    )


def _authorizer(facts: Facts, broker: Broker) -> Finding:
    name, report = "authorizer", facts.reader(broker.id)
    if report is not None and report.get("refused") is not None:
        return Finding(name, "ok", "{have} the authorizer, which can refuse requests")
    installed: str | None = None
    if not isinstance(broker.configs, NotKnown):
        installed = broker.configs.get("authorizer.class.name") or "none"
    if installed == AUTHORIZER and report is None:
        what = "{have} the authorizer by configuration; no report shows that it refuses"
        return Finding(name, "not known", what, "mend the callback first")
    if installed is None and report is None:
        what = "{have} an unknown authorizer"
        return Finding(name, "not known", what, "grant DescribeConfigs, or mend the callback")
    what = f"{{do}} not have the sidecar's authorizer (there is {installed or 'perhaps another'})"
    if facts.rules.stop_line is not None or facts.by_volume:
        effect = "the stop line only lengthens pauses there, and the volume can still fill up"
        scope = "SIDECAR_THROTTLE_SCOPE=volume has no effect there"
        if facts.by_volume:
            effect = scope if facts.rules.stop_line is None else f"{scope}, and {effect}"
        to_do = "add the line of docs/refusal.md, and restart"
        return Finding(name, "fail", f"{what}, so {effect}", to_do)
    return Finding(name, "ok", f"{what}, which these settings do not need")


def _jar(facts: Facts, broker: Broker) -> Finding:
    report = facts.reader(broker.id)
    if report is None:
        what = "{have} read no sidecar, so the jar's version is not seen"
        return Finding("jar", "not known", what)
    version = report.get("jar_version")
    if version == facts.version:
        return Finding("jar", "ok", f"{{have}} the jar {version}, as this program")
    reported = f"the jar {version}" if version else "a jar that reports no version"
    what = f"{{have}} {reported}; this program is {facts.version}"
    return Finding("jar", "warn", what, "copy the jar again, and restart the broker")


def shared(rows: Iterable[tuple[Broker, Finding]]) -> Iterator[Finding]:
    """One finding for all brokers with the same; {have} is their verb."""
    alike: dict[Finding, list[int]] = {}
    for broker, row in rows:
        alike.setdefault(row, []).append(broker.id)
    for row, ids in alike.items():
        yield row.about(ids)
