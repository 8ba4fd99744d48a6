"""The findings of ``doctor``: what is in place, what is not, and what to do.

A finding is "ok" only if that was seen. What could not be seen is "not known".

Example: brokers 0 and 1 read their sidecars, and broker 2 has no quota callback. The last finding
is "if a volume reaches its limit now, brokers 0, 1 throttle their producers within 79 s; broker 2
may go on at full speed".
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sidecar.cli.doctor.broker_findings import broker_findings, callback
from sidecar.cli.doctor.facts import NO_PROMETHEUS, Facts, NotKnown, TokenState
from sidecar.cli.doctor.quota_findings import quota_effect, quota_findings
from sidecar.cli.doctor.room_findings import room_findings
from sidecar.cli.doctor.verdicts import Finding, Verdict, named
from sidecar.cli.doctor.volume_findings import retention, volumes

CLOCK_S: Final = 5.0
"""Clocks that differ by more make logs, histories and certificates hard to compare."""


def findings(facts: Facts) -> list[Finding]:
    """All findings, in the order in which to mend them."""
    return [
        *_files(facts),
        *broker_findings(facts),
        *quota_findings(facts),
        *room_findings(facts),
        *_sidecars(facts),
        *_equal(facts),
        *_clocks(facts),
        *_tokens(facts),
        *volumes(facts),
        *retention(facts),
        *_alerts(facts),
        *_effect(facts),
    ]


def _files(facts: Facts) -> Iterator[Finding]:
    yield Finding("settings", "ok", "the settings can be read")
    for remark in facts.remarks:
        yield Finding("settings", "warn", remark, "change or remove this setting")
    for problem in facts.file_problems:
        yield Finding("files", "fail", problem, 'mend it: "run" does not start')
    if facts.state_file is None:
        yield Finding(
            "state file",
            "warn",
            "SIDECAR_STATE_FILE is not set, so a restart forgets overrides and dead brokers",
            "set it to a file that is not on a data volume",
        )
    elif facts.state_problem:
        yield Finding("state file", "warn", facts.state_problem, "choose another place for it")
    else:
        yield Finding("state file", "ok", f"{facts.state_file} can be written")


def _sidecars(facts: Facts) -> Iterator[Finding]:
    name = "sidecars"
    for sidecar in facts.sidecars:
        if sidecar.problem:
            what = f"{sidecar.address} does not answer: {sidecar.problem}"
            yield Finding(name, "fail", what, "start it, or correct --sidecars")
            continue
        found, source = sidecar.factor, str(sidecar.factor.get("source"))
        what = f"{sidecar.address} decides {found.get('factor')} ({source}): {found.get('reason')}"
        if source in {"fallback", "disabled"}:
            yield Finding(name, "fail", what, "docs/runbooks/KafkaThrottleFallback.md")
        elif sidecar.failure:
            what = f"{sidecar.address} can't read all brokers: {sidecar.failure}"
            yield Finding(name, "fail", what, "see its log, and GET /v1/brokers")
        elif source == "override" or found.get("factor") != 1.0:
            yield Finding(name, "warn", what, "docs/runbooks/KafkaProducersThrottled.md")
        else:
            yield Finding(name, "ok", what)
        if not sidecar.version:
            yield Finding(name, "not known", f"{sidecar.address} did not tell its version")
        elif sidecar.version != facts.version:
            what = f"{sidecar.address} has version {sidecar.version}; this program {facts.version}"
            yield Finding(name, "warn", what, "install the same version everywhere")
    if not facts.answering:
        what = "versions, limits, clocks, token, and who reads: no sidecar answered"
        yield Finding(name, "not known", what, "name running sidecars by --sidecars")


def _equal(facts: Facts) -> Iterator[Finding]:
    """Compares what each sidecar judges by, and these settings."""
    name, limit, line = "equal limits", facts.rules.limit, facts.rules.stop_line
    own = _judged(
        None if limit is None else {"type": limit.name, "value": limit.value},
        None if line is None else {"type": line.name, "value": line.value},
        0.0 if limit is None else limit.release_margin,
        "volume" if facts.by_volume else "cluster",
    )
    by: dict[str, list[str]] = {own: ["these settings"]}
    for sidecar in facts.answering:
        found = sidecar.limits
        if found is None or found.get("limit") is None:
            what = f"{sidecar.address} shows no limit: it can't answer, or is in observe mode"
            yield Finding(name, "not known", what, "compare its settings by hand")
            continue
        judged = _judged(
            found["limit"], found.get("stop_line"), found.get("release_margin"), found.get("scope")
        )
        by.setdefault(judged, []).append(sidecar.address)
    if len(by) > 1:
        each = "; ".join(f"{', '.join(names)}: {judged}" for judged, names in by.items())
        yield Finding(name, "fail", each, "give all sidecars the same settings, and restart them")
    elif len(by[own]) > 1:
        yield Finding(name, "ok", f"{', '.join(by[own])}: {own}")
    clusters = {facts.cluster_id, *(each.factor.get("cluster_id") for each in facts.answering)}
    if len(clusters - {None}) > 1:
        found_ids = ", ".join(sorted(map(str, clusters - {None})))
        what = f"these settings and the sidecars lead to different clusters: {found_ids}"
        yield Finding(name, "fail", what, "docs/runbooks/KafkaThrottleOtherCluster.md")


def _judged(
    limit: Mapping[str, Any] | None, line: Mapping[str, Any] | None, margin: object, scope: object
) -> str:
    shown = [
        f"{what} {each['type']}={each['value']:.12g}"
        for what, each in (("limit", limit), ("stop line", line))
        if each is not None
    ]
    return ", ".join([*shown, f"release margin {margin or 0:.12g}, scope {scope}"])


def _clocks(facts: Facts) -> Iterator[Finding]:
    for sidecar in facts.answering:
        ahead = sidecar.clock_ahead_s
        if ahead is None:
            yield Finding("clocks", "not known", f"{sidecar.address} did not tell its time")
        elif abs(ahead) > CLOCK_S:
            side = "ahead of" if ahead > 0 else "behind"
            what = f"{sidecar.address} is {abs(ahead):.0f} s {side} this machine"
            yield Finding("clocks", "warn", what, "synchronize the clocks (NTP) of both")
    near = [each.address for each in facts.answering if abs(each.clock_ahead_s or 0.0) <= CLOCK_S]
    if near and all(each.clock_ahead_s is not None for each in facts.answering):
        what = f"{', '.join(near)}: within {CLOCK_S:.0f} s of this machine"
        yield Finding("clocks", "ok", f"{what}; Kafka's protocol does not tell brokers' time")


_TOKENS: Final[Mapping[str, tuple[Verdict, str, str]]] = {
    "accepted": ("ok", "the token is accepted by {}", ""),
    "refused": (
        "fail",
        "another token than in SIDECAR_TOKEN_FILE here is needed by {}",
        "give both the same file, and send the sidecar SIGHUP",
    ),
    "not set here": (
        "warn",
        "no token can be read here, so overrides of {} can't be set from here",
        "write one to a file, and set SIDECAR_TOKEN_FILE",
    ),
    "not set there": (
        "warn",
        "no token is set, so nobody can set an override, at {}",
        "set its SIDECAR_TOKEN_FILE, and restart it",
    ),
}


def _tokens(facts: Facts) -> Iterator[Finding]:
    alike: dict[TokenState | NotKnown, list[str]] = {}
    for sidecar in facts.answering:
        alike.setdefault(sidecar.token, []).append(sidecar.address)
    for state, addresses in alike.items():
        where = ", ".join(addresses)
        if isinstance(state, NotKnown):
            what = f"whether the token is accepted by {where}: {state.why}"
            yield Finding("token", "not known", what, "run this command beside the sidecar")
        else:
            verdict, what, to_do = _TOKENS[state]
            yield Finding("token", verdict, what.format(where), to_do)


def _alerts(facts: Facts) -> Iterator[Finding]:
    name, found = "alerts", facts.alerts
    if isinstance(found, NotKnown):
        to_do = "correct --prometheus, or start it"
        if found == NO_PROMETHEUS:
            to_do = "name it: --prometheus http://prometheus:9090"
        yield Finding(name, "not known", found.why, to_do)
        return
    if found.missing:
        what = f"Prometheus has not loaded {', '.join(sorted(found.missing))}"
        yield Finding(name, "warn", what, "load the rules of docs/alerts.md")
    else:
        yield Finding(name, "ok", "Prometheus has loaded all alerts")
    if found.scraped < len(facts.sidecars):
        what = f"Prometheus scrapes {found.scraped} sidecars; {len(facts.sidecars)} were asked here"
        yield Finding(name, "warn", what, "scrape every sidecar: docs/alerts.md")


def _effect(facts: Facts) -> Iterator[Finding]:
    """What would happen if a volume reached its limit now."""
    name, when = "effect", "if a volume reaches its limit now,"
    if facts.enforcement == "none":
        yield Finding(name, "ok", f"{when} nobody is throttled: SIDECAR_ENFORCEMENT is none")
        return
    if facts.observe_only:
        what = f"{when} nobody is throttled: the sidecars are in observe mode"
        yield Finding(name, "warn", what, "set SIDECAR_MODE=enforce when you have seen enough")
        return
    sources = {each.factor.get("source") for each in facts.answering if not each.failure}
    if not facts.active or not sources & {"observation", "override"}:
        what = f"{when} nobody knows who is throttled: no broker is listed, or no sidecar sees"
        yield Finding(name, "not known", what, "mend the findings above")
        return
    if facts.enforcement == "client-quotas":
        yield quota_effect(facts, when)
        return
    verdicts = {each.id: callback(facts, each).verdict for each in facts.active}
    obeying = [key for key, verdict in verdicts.items() if verdict == "ok"]
    failing = [key for key, verdict in verdicts.items() if verdict == "fail"]
    unknown = [key for key, verdict in verdicts.items() if verdict == "not known"]
    parts = []
    if obeying:
        verb = "throttles its" if len(obeying) == 1 else "throttle their"
        parts.append(f"{named(obeying)} {verb} producers within {facts.timing.reaction_s:.0f} s")
    if failing:
        parts.append(f"{named(failing)} may go on at full speed")
    if unknown:
        parts.append(f"of {named(unknown)} it is not known")
    verdict: Verdict = "fail" if failing else "not known" if unknown else "ok"
    to_do = "" if verdict == "ok" else "mend the findings of the callback above"
    yield Finding(name, verdict, f"{when} {'; '.join(parts)}", to_do)
