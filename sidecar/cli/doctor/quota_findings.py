"""The findings about client quotas: windows, callbacks, originals that were left, and the effect.

Without the quota callback, the sidecar lowers Kafka's own quotas (SIDECAR_ENFORCEMENT is
client-quotas). Originals that an earlier sidecar left are a finding with any enforcement.

Example: a sidecar was killed while alice was at 8.5 of 10 MB/s, and now none is throttled. The row
is ("lowered quotas", "warn", "not restored: user 'alice' (10.0 MB/s before), though ...").
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sidecar.cli.doctor.broker_findings import shared
from sidecar.cli.doctor.facts import Broker, Facts, NotKnown
from sidecar.cli.doctor.verdicts import Finding
from sidecar.client_quotas.plan import Wanted, beginning
from sidecar.formats.quantities import format_size
from sidecar.quotas.entities import Entity
from sidecar.quotas.kept_originals import Kept
from sidecar.throttle.quota_steps import STEP_S
from sidecar.throttle.sizes import size

DEFAULT_WINDOWS: Final = {"quota.window.num": "11", "quota.window.size.seconds": "1"}
"""Kafka's defaults, for which the steps of quotas are made."""

_NEEDED: Final = frozenset({"DescribeConfigs", "AlterConfigs"})
_NAMED: Final = 5


def quota_findings(facts: Facts) -> Iterator[Finding]:
    """All of them but the effect."""
    if facts.enforcement == "client-quotas":
        yield from shared([(each, _windows(each)) for each in facts.active])
        yield from shared(_callbacks(facts))
        yield from shared((each, _metrics(facts, each)) for each in facts.active if facts.metrics)
        if facts.rules.stop_line is not None:
            what = "client quotas refuse nobody, so at the stop line producers get the floor"
            yield Finding("stop line", "warn", what, "remove it, or use the callback")
    yield from _lowered(facts)


def _windows(broker: Broker) -> Finding:
    name, configs = "quota window", broker.configs
    if isinstance(configs, NotKnown):
        to_do = "grant DescribeConfigs on the cluster"
        return Finding(name, "not known", f"{{have}} unknown windows: {configs.why}", to_do)
    others = {
        key: value
        for key, default in DEFAULT_WINDOWS.items()
        if (value := configs.get(key)) not in {None, default}
    }
    if others:
        found = ", ".join(f"{key}={value}" for key, value in others.items())
        to_do = ", ".join(f"{key}={DEFAULT_WINDOWS[key]}" for key in others)
        what = f"{{have}} {found}, so clients may wait for longer than 6 s"
        return Finding(name, "fail", what, f"set {to_do} and restart, or use the callback")
    if all(configs.get(key) is None for key in DEFAULT_WINDOWS):
        return Finding(name, "not known", "{do} not tell the quota windows", "compare them by hand")
    return Finding(name, "ok", "{have} Kafka's default quota windows")


def _callbacks(facts: Facts) -> Iterator[tuple[Broker, Finding]]:
    for broker in facts.active:
        key = "client.quota.callback.class"
        if not isinstance(broker.configs, NotKnown) and (found := broker.configs.get(key)):
            what = f"{{have}} {key}={found}, which may ignore Kafka's quotas"
            to_do = "remove that line and restart, or set SIDECAR_ENFORCEMENT=callback"
            yield broker, Finding("callback", "warn", what, to_do)


def _metrics(facts: Facts, broker: Broker) -> Finding:
    """Whether the metrics of a broker tell what its clients write."""
    name, rate = "broker metrics", facts.metrics.get(broker.id, NotKnown(""))
    if isinstance(rate, NotKnown):
        what = f"metrics that can't be read: {rate.why}" if rate.why else "no address for metrics"
        what = f"{{have}} {what}; quotas begin by fill rates"
        return Finding(name, "warn", what, "check SIDECAR_BROKER_METRICS_URLS")
    if rate == 0.0:
        what = "{have} metrics that show no client; quotas begin by fill rates"
        to_do = (
            "set a quota that makes Kafka measure, or the exporter's rule: docs/managed-kafka.md"
        )
        return Finding(name, "not known", what, to_do)
    return Finding(name, "ok", "{have} metrics that tell what clients write")


def _lowered(facts: Facts) -> Iterator[Finding]:
    """What is lowered, and whether it should be."""
    name, found, lowers = "lowered quotas", facts.quotas, facts.enforcement == "client-quotas"
    if isinstance(found, NotKnown):
        if lowers:
            yield Finding(name, "not known", found.why, "mend the ACLs or the brokers first")
        return
    if not found.kept:
        if lowers:
            yield Finding(name, "ok", "no produce quota is lowered")
        return
    what = f"not restored: {_originals(found.kept)}"
    if lowers and facts.observe_only:
        to_do = "run throttle-sidecar quotas restore"
        yield Finding(name, "warn", f"{what}, and observe mode restores nothing", to_do)
    elif lowers and facts.throttled:
        yield Finding(name, "ok", f"{what}; a sidecar throttles")
    elif lowers and not facts.answering:
        what += "; no sidecar told whether it throttles"
        yield Finding(name, "not known", what, "name running sidecars by --sidecars")
    else:
        why = "no sidecar throttles" if lowers else f"SIDECAR_ENFORCEMENT is {facts.enforcement}"
        to_do = "a release takes a minute; after that, run throttle-sidecar quotas restore"
        yield Finding(name, "warn", f"{what}, though {why}", to_do)


def quota_effect(facts: Facts, when: str) -> Finding:
    """Who would be throttled how, where sidecars enforce by client quotas."""
    name, found = "effect", facts.quotas
    rights = facts.rights if facts.by_acls else _NEEDED
    if not isinstance(rights, NotKnown) and (lacking := _NEEDED - rights):
        needed = " and ".join(sorted(lacking))
        what = f"{when} nobody is throttled: the sidecar lacks {needed} on the cluster"
        return Finding(name, "fail", what, "mend the ACLs above")
    if isinstance(found, NotKnown):
        what = f"{when} nobody knows who is throttled: {found.why}"
        return Finding(name, "not known", what, "mend the findings above")
    planned = beginning(found, Wanted(0.0, facts.floor, 0.0))
    originals = {**found.kept, **planned.keep}
    floor = format_size(facts.floor)
    if not originals:
        what = f"{when} nobody is throttled: no produce quota is above the floor of {floor}"
        return Finding(name, "warn", what, "lower SIDECAR_CLIENT_QUOTA_FLOOR")
    return Finding(
        name,
        "ok",
        f"{when} produce quotas fall every {STEP_S:g} s, after {facts.timing.interval_s:g} s at"
        f" most, down to {floor} a second for each quota on each broker: {_originals(originals)}",
    )


def _originals(kept: Mapping[Entity, Kept]) -> str:
    """The first entities with their originals, and how many more there are."""
    texts = [
        f"{entity} ({'none' if each.original is None else size(each.original) + '/s'} before)"
        for entity, each in kept.items()
    ]
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
