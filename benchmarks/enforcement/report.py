"""Tables and pictures out of a folder of results.

In the folder: ``SCENARIO.CONTENDER.ROUND.json`` for each course, ``scope.CONTENDER.json``,
``overhead.json``, ``polls.json``, ``machine.json``. What is missing is left out, so a part can be
read before all is measured.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.enforcement.comparison import Comparison, as_table, compare, number
from benchmarks.enforcement.contenders import NOTHING, OURS, PEER, SHORTEST
from benchmarks.enforcement.course import Course
from benchmarks.enforcement.figures import figures
from benchmarks.enforcement.overhead import LOADS
from benchmarks.enforcement.pictures import picture
from benchmarks.enforcement.polls import PARTITIONS, Cost
from benchmarks.enforcement.scenarios import SCENARIOS
from benchmarks.enforcement.scene import THROTTLED_S, Scenario
from benchmarks.enforcement.tenants import Tenants, compare_tenants, tenants_picture

_NAMES: Final = {each.key: each.name for each in (NOTHING, PEER, OURS)}
_SCOPE_TITLE: Final = "Two tenants of one broker"
_SCOPE: Final = """\
Broker 0 leads the topics of two tenants, etl and web, each with a librdkafka producer and a Java
producer of 2 MB/s and a login of its own. Replicas of etl's topics fill the volume of broker 2;
web's lie on broker 1. Ours has `SIDECAR_THROTTLE_SCOPE=volume` and the authorizer
([only those who fill the volume](how-much-and-whom.md#only-those-who-fill-the-volume)); the plugin
throttles all. Shares are of each producer's own rate before. Space is freed {freed} s after the
crossing, and the time while etl is throttled begins at the crossing, not at the throttle.
"""
_HEAD: Final = """\
# Enforcement, measured

Written by `make bench-enforcement`; do not edit. Three brokers (Kafka 4.3.1) with two volumes each,
one limit in available bytes. 18 MB/s go to three partitions with two replicas; the fullest volume
takes 12 MB/s of that, two thirds of it by replication. Space is freed {freed} s after the crossing,
in a long throttle 10 minutes after it, or 15 s after producers were throttled if that is later.

- Throttled: the first moment after the crossing from which a second, and its first fifth, store at
  most a fifth of the earlier rate. Back: the first after the freeing from which two seconds bring
  90 % of it.
- Let through: bytes of produce requests appended from 5 s after producers were throttled. The
  target is the sum over brokers of max(leak budget, connections x bytes of a request / pause.max),
  and of one request of each connection: that much a count of some seconds may be off.
- "> 90 s": it did not happen in that time.
- Volumes fill at full speed for 14 s before the crossing, with default intervals for 75 s. A
  volume that did not fill until then is read at the next poll, up to a minute later: measured with
  14 s it was 46 s for both.
- Our emergency horizon is a minute here: these volumes have room for minutes of what leaks, which
  would be an emergency, in which pauses may be longer than pause.max.
- In an emergency each broker still lets connections x bytes of a request / pause.emergency.max
  through: 100 connections with 1 MB each and 300 s are 333 kB/s. More if they are librdkafka's,
  which reconnects before its pause is over:
  [what still gets through](quota-callback-explained.md#what-still-gets-through).
  That is not in these tables.
- In a long throttle our brokers have the authorizer: [what pauses do not stop](refusal.md).
- After a long one all requests are of 1 MB, as large as librdkafka makes them, so that a second has
  one more of each producer, or none: 3 MB of three.
- The plugin's shortest interval that works is 2 s: with 1 s its requests time out at once. Ours
  polled every second, and down to every 100 ms near the limit.

"""


def report(folder: Path, out: Path) -> str:
    """Write the pictures and the page beside each other; the page's text.

    Args:
        folder: with the results.
        out: the page, a Markdown file; pictures go beside it.
    """
    parts = [_HEAD.format(freed=f"{THROTTLED_S:.0f}")]
    machine = folder / "machine.json"
    if machine.is_file():
        lines = json.loads(machine.read_text(encoding="utf-8"))
        parts.append("\n".join(f"- {line}" for line in lines) + "\n")
    for scenario in SCENARIOS:
        parts.extend(_scenario(scenario, folder, out))
    parts.extend(_scope(folder, out))
    rest = [*_overhead(folder / "overhead.json"), *_polls(folder / "polls.json")]
    if rest:
        parts.append(f"## What it costs\n\n{as_table(rest, PEER.name, OURS.name)}\n")
    page = "\n".join(parts)
    out.write_text(page, encoding="utf-8")
    return page


def _scenario(scenario: Scenario, folder: Path, out: Path) -> Iterator[str]:
    courses = {
        key: [Course.load(file) for file in sorted(folder.glob(f"{scenario.key}.{key}.*.json"))]
        for key in (PEER.key, OURS.key)
    }
    if not any(courses.values()):
        return
    peer, ours = ([figures(course) for course in courses[key]] for key in (PEER.key, OURS.key))
    # While a volume is beyond its limit the sidecar polls at its interval.
    poll_s = 1.0 if scenario.polls is SHORTEST else 60.0
    yield f"## {scenario.title}\n"
    yield as_table(compare(peer, ours, poll_s), PEER.name, OURS.name) + "\n"
    image = out.with_name(f"{out.stem}-{scenario.key}.svg")
    # The first rounds, which were watched to their end.
    firsts = [found[0] for found in courses.values() if found]
    image.write_text(picture(scenario.title, firsts, _NAMES), encoding="utf-8")
    yield f"![{scenario.title}]({image.name})\n"
    notes = [
        f"- {_NAMES[course.contender]}: {note}"
        for found in courses.values()
        for course in found
        for note in course.notes
    ]
    if notes:
        yield "\n".join(notes) + "\n"


def _scope(folder: Path, out: Path) -> Iterator[str]:
    files = {each.key: folder / f"scope.{each.key}.json" for each in (PEER, OURS)}
    found = {key: Tenants.load(file) for key, file in files.items() if file.is_file()}
    if not found:
        return
    yield f"## {_SCOPE_TITLE}\n"
    freed = max(each.freed_at - each.crossed_at for each in found.values())
    yield _SCOPE.format(freed=f"{freed:.0f}")
    rows = compare_tenants(found.get(PEER.key), found.get(OURS.key))
    yield as_table(rows, PEER.name, OURS.name) + "\n"
    image = out.with_name(f"{out.stem}-scope.svg")
    named = {_NAMES[key]: each for key, each in found.items()}
    image.write_text(tenants_picture(_SCOPE_TITLE, named), encoding="utf-8")
    yield f"![{_SCOPE_TITLE}: web has its throughput while etl is throttled]({image.name})\n"


def _overhead(file: Path) -> Iterator[Comparison]:
    """Throughput over that without a callback, round by round."""
    if not file.is_file():
        return
    measured: Mapping[str, Mapping[str, Sequence[float]]] = json.loads(file.read_text("utf-8"))
    for load in LOADS:
        rates = measured[load.key]
        bare = rates[NOTHING.key]
        noise = (max(bare) - min(bare)) / median(bare)
        texts = {key: _shares(rates[key], bare) for key in (PEER.key, OURS.key) if key in rates}
        own = [mine / base for mine, base in zip(rates.get(OURS.key, ()), bare, strict=False)]
        yield Comparison(
            f"factor 1.0: {load.title}; {number(median(bare))} {load.unit} without a callback",
            texts.get(PEER.key, ""),
            texts.get(OURS.key, ""),
            f"within noise (without a callback: ±{50 * noise:.1f} %)",
            abs(median(own) - 1) <= noise / 2 if own else None,
        )


def _shares(rates: Sequence[float], bare: Sequence[float]) -> str:
    shares = [100 * rate / base for rate, base in zip(rates, bare, strict=True)]
    return f"{median(shares):.1f} % ({min(shares):.1f} to {max(shares):.1f})"


def _polls(file: Path) -> Iterator[Comparison]:
    """Milliseconds of CPU of all brokers for a poll of all of them."""
    if not file.is_file():
        return
    measured: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))
    costs = {key: Cost(**each) for key, each in measured.items()}
    bare = costs[NOTHING.key]
    found = {key: poll_ms(costs[key], bare) for key in (PEER.key, OURS.key) if key in costs}
    peer, ours = found.get(PEER.key), found.get(OURS.key)
    what = f"broker CPU for a poll of three brokers with {PARTITIONS:,} partitions each"
    yield Comparison(
        what,
        "" if peer is None else f"{number(peer)} ms",
        "" if ours is None else f"{number(ours)} ms",
        "" if peer is None else f"≤ {number(peer / 5)} ms",
        None if peer is None or ours is None else ours <= peer / 5,
    )
    if OURS.key in costs:
        cost = costs[OURS.key]
        own = 1000 * cost.sidecar_cpu_s / (cost.requests / 3)
        yield Comparison("a sidecar's own CPU for it", "", f"{number(own)} ms")


def poll_ms(cost: Cost, bare: Cost) -> float:
    """CPU of all three brokers for one poll of the cluster, ms.

    Example: 9 s in a minute, 3 s of them without anybody who polls, and 270 requests, which are 90
    polls of three brokers: 67 ms.
    """
    extra = cost.broker_cpu_s - bare.broker_cpu_s * cost.seconds / bare.seconds
    return 1000 * extra / (cost.requests / 3)
