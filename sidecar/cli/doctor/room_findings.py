"""The findings about what is declared for full volumes: room to make, storage budgets, reserves.

A feature that is not set has no row.

Example: SIDECAR_RELIEF_FILE has "logs" and "debug.*", and no topic begins with "debug.". The row is
("making room", "warn", "no topic that this user may describe matches debug.*").
"""

from collections.abc import Hashable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from sidecar.cli.doctor.broker_findings import grant, shared
from sidecar.cli.doctor.facts import Broker, Facts, NotKnown, Relief
from sidecar.cli.doctor.verdicts import Finding
from sidecar.throttle.relief import left_out_order
from sidecar.throttle.sizes import size

RESERVE: Final = "client.quota.callback.sidecar.reserve.bytes"
REPORTERS: Final = "kafka.metrics.reporters"
METADATA: Final = "metadata.log.dir"

_REPORTER: Final = "throttlesidecar.ReserveReporter"
_NAMED: Final = 5


def room_findings(facts: Facts) -> Iterator[Finding]:
    """All of them."""
    if facts.relief is not None:
        yield from _topics(facts, facts.relief)
        yield from _modes(facts, facts.relief)
    yield from _budgets(facts)
    yield from shared([row for each in facts.active for row in _reserve(facts, each)])


def _topics(facts: Facts, relief: Relief) -> Iterator[Finding]:
    name, none = "making room", "nothing is deleted"
    if relief.problem:
        yield Finding(name, "not known", relief.problem, "mend the brokers first")
        return
    found = [
        Finding(
            name,
            "fail",
            f"{none} from {each}: Delete on it is missing",
            grant(facts, "Delete", f"--topic '{each}'"),
        )
        for each in relief.undeletable[:_NAMED]
    ]
    for each in relief.patterns:
        if not any(fnmatchcase(topic, each) for topic in relief.topics):
            what = f"no topic that this user may describe matches {each}"
            to_do = "correct SIDECAR_RELIEF_FILE, or grant Describe on it"
            found.append(Finding(name, "warn", what, to_do))
    for topic, why in sorted(relief.left_out.items(), key=left_out_order)[:_NAMED]:
        to_do = "grant what docs/security.md says, or remove it from SIDECAR_RELIEF_FILE"
        found.append(Finding(name, "warn", f"{none} from {topic}: {why}", to_do))
    if relief.groups_unknown:
        to_do = "grant Describe on groups, on all topics that they read, and on __consumer_offsets"
        found.append(Finding(name, "warn", f"{none}: {relief.groups_unknown}", to_do))
    can = "can be read and deleted from" if relief.mode == "delete" else "can be read"
    what = f"{relief.mode}: declared topics that {can}: {len(relief.topics)}"
    yield from found or [Finding(name, "ok", what)]


def _modes(facts: Facts, relief: Relief) -> Iterator[Finding]:
    name = "making room"
    shown = {each.address: each.relief for each in facts.answering if each.relief is not None}
    for address, each in shown.items():
        if failure := each.get("failure"):
            yield Finding(name, "warn", f"{address} can make no room: {failure}", "see its log")
    modes = {address: str(each.get("mode")) for address, each in shown.items()}
    yield from _alike(name, relief.mode, modes, relief.mode)


def _budgets(facts: Facts) -> Iterator[Finding]:
    if facts.budgets is None:
        return
    name, keys = "budgets", ("owner", "soft_bytes", "hard_bytes")
    own = frozenset((each.owner, each.soft_bytes, each.hard_bytes) for each in facts.budgets)
    yield Finding(name, "ok", f"owners in SIDECAR_BUDGETS_FILE: {len(own)}")
    shown = {
        each.address: frozenset(tuple(map(budget.get, keys)) for budget in each.budgets)
        for each in facts.answering
        if each.budgets
    }
    if not shown:
        what = "no sidecar shows its budgets: followers show none, others after a minute"
        yield Finding(name, "not known", what, "name the observers by --sidecars")
    yield from _alike(name, own, shown, "owners and sizes as here")


def _alike(
    name: str, own: Hashable, shown: Mapping[str, Hashable], described: str
) -> Iterator[Finding]:
    """Compares what sidecars show with these settings."""
    if other := [address for address, each in shown.items() if each != own]:
        what = f"{', '.join(other)}: not {described}, as these settings have it"
        to_do = "give all sidecars the same settings and file, and restart them"
        yield Finding(name, "fail", what, to_do)
    elif shown:
        yield Finding(name, "ok", f"{', '.join(shown)}: {described}")


def _reserve(facts: Facts, broker: Broker) -> Iterator[tuple[Broker, Finding]]:
    name, report = "reserve", facts.reader(broker.id)
    configs = {} if isinstance(broker.configs, NotKnown) else broker.configs
    files: list[dict[str, Any]] = list((report or {}).get("reserves") or ())
    # Kafka hides the value, since it does not know the property.
    if not files and (RESERVE not in configs or configs[RESERVE] == "0"):
        return
    found = {each.get("log_dir"): each.get("bytes") or 0 for each in files}
    log_dirs = [each.log_dir for each in facts.volumes if each.broker_id == broker.id]
    missing = ", ".join(each for each in log_dirs if each not in found)
    least = size(min(found.values(), default=0))
    row = Finding(name, "ok", f"{{have}} a reserve of {least} or more in each log dir")
    if report is None:
        what = "{have} reserve.bytes, and {read} no sidecar, so its reserve is not seen"
        row = Finding(name, "not known", what, "mend the callback first")
    elif 0 in found.values():
        what = "{have} started from the reserve in a log dir, and {have} no other there"
        row = Finding(name, "fail", what, "docs/runbooks/KafkaVolumeReserveReleased.md")
    elif missing:
        what = f"{{have}} no reserve in {missing}, though reserve.bytes is set"
        to_do = "wait until that volume has more than its limit and reserve.bytes; see its log"
        row = Finding(name, "warn", what, to_do)
    yield broker, row
    is_elsewhere = configs.get(METADATA) and configs[METADATA] not in log_dirs
    if REPORTERS in configs and _REPORTER not in (configs[REPORTERS] or "") and not is_elsewhere:
        what = f"{{do}} not have {REPORTERS}={_REPORTER}, so Kafka opens its metadata log before"
        what += " it releases the reserve, and does not start on a full volume"
        yield broker, Finding(name, "fail", what, "add that line, and restart it")
