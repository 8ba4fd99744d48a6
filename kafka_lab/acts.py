"""The demo's further acts: who fills a volume, a storage budget, and room made before a throttle.

They go on where the scenario ends, with other sidecars and on the same volume. Two tenants write to
it slowly, until the sidecar says after a minute who fills it. Then one of them writes much more,
reaches its storage budget, and is paused alone. The other writes more, too: its topic is declared
expendable, so its oldest records are deleted before the volume reaches its limit. The throttle
factor stays at 1.0.

Example: a volume of 201 MB has a limit of 100 MB. From 125 MB available on it is relieved, until it
has 150 MB.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.loads import FILLER, LITTLE_BYTES, LOGS, OTHER, Load, fill_topic, produce, retain
from kafka_lab.nodes import Broker
from kafka_lab.scenario import (
    BACK_SHARE,
    THROTTLED_SHARE,
    Scenario,
    meanwhile,
    readers,
    start_observing,
    without_quota,
)
from kafka_lab.sidecar_processes import stop_sidecars
from kafka_lab.waiting import until
from sidecar.errors import ClusterError
from sidecar.kafka.broker_loggers import set_levels
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses

_SLOW: Final = {FILLER: 5e5, LOGS: 3.5e5}
_FAST: Final = {FILLER: 4e6, LOGS: 1.5e6}
_BUDGETS: Final = f"""
[owners.{FILLER}]
topics = ["{{topic}}"]
hard = "45MB"

[owners.{OTHER}]
topics = ["{OTHER}"]
hard = "100MB"
"""
_CLASSES: Final = f"""
[[class]]
topics = ["{LOGS}"]
keep_bytes = "5MB"
"""
_GROWTH_TIMEOUT_S: Final = 180.0
"""A volume is split into topics once a minute, and growth needs two readings."""
_WATCH_S: Final = 6.0
_ASK_S: Final = 0.25


async def play_more(scenario: Scenario, cluster: Cluster) -> None:
    """Play the acts, while the scenario's producers run.

    Raises:
        ClusterError: a step was not observed.
    """
    if not cluster.volumes_are_real:
        raise ClusterError("budgets and room need volumes of their own, and tmpfs can't be mounted")
    broker = cluster.brokers[max(cluster.brokers)]
    title = "sidecars restarted with a storage budget, and with a topic that may be trimmed"
    async with scenario.step(title):
        _send(scenario, FILLER, _SLOW)
        await _log_requests(cluster)
        partition = await _create_logs(broker, cluster.bootstrap)
        budgets, classes = broker.home / "budgets.toml", broker.home / "relief.toml"
        budgets.write_text(_BUDGETS.format(topic=fill_topic(cluster)))
        classes.write_text(_CLASSES)

        def settings_of(each: Broker) -> Mapping[str, str]:
            mine = {
                "SIDECAR_BROKER_ID": str(each.id),
                "SIDECAR_REQUEST_LOG_FILE": f"{each.log}.requests",
            }
            # Without SIDECAR_PEERS, one sidecar is to make room.
            makes = {"SIDECAR_RELIEF_FILE": str(classes), "SIDECAR_RELIEF_MODE": "delete"}
            return mine | (makes if each is broker else {})

        await stop_sidecars(cluster)
        await start_observing(
            scenario, cluster, {"SIDECAR_BUDGETS_FILE": str(budgets)}, settings_of
        )
        await retain(cluster, None)
    scenario.say(f"{FILLER} now has a storage budget of 45 MB, and old records of {LOGS} may go.")
    began = asyncio.get_running_loop().time()
    traffic = produce(cluster, LOGS, LOGS, _SLOW[LOGS], partition)
    async with traffic, meanwhile(readers(scenario)):
        scenario.loads += (Load(LOGS, _SLOW[LOGS], None, traffic),)
        await _who_fills_it(scenario, broker)
        await _budget(scenario)
        await _room(scenario)
        await _factor_stayed(scenario, broker.id, began)
        await _budget_is_kept_again(scenario, cluster)


async def _who_fills_it(scenario: Scenario, broker: Broker) -> None:
    async with scenario.step("who fills the volume?", timeout_s=_GROWTH_TIMEOUT_S) as step:
        paths = {volume.path for volume in broker.volumes}

        def grows(document: dict[str, Any]) -> str:
            said = (
                each["sentence"]
                for each in document["volumes"]
                if each["log_dir"] in paths and "written by" in each["sentence"]
            )
            return next(said, "")

        step.title = await _answer(scenario, "/v1/growth", grows)
    scenario.say(f"Who fills it? {step.title[:1].upper()}{step.title[1:]}.")
    await asyncio.sleep(_WATCH_S / 2)


async def _budget(scenario: Scenario) -> None:
    scenario.say(f"{FILLER} starts a large job, and soon reaches its budget.")
    _send(scenario, FILLER, _FAST)
    async with scenario.step(f"{FILLER} reaches its storage budget") as step:

        def paused(document: dict[str, Any]) -> str:
            states = {each["owner"]: each for each in document["budgets"]}
            found = states.get(FILLER, {"state": ""})
            return found["sentence"] if found["state"] == "paused" else ""

        share = await _answer(scenario, "/v1/budgets", paused)
        step.title = f"{FILLER} has used {share}, its storage budget"
    load = _load(scenario, FILLER)
    async with scenario.step(f"producers of {FILLER} paused"):
        await until(lambda: load.rate() <= THROTTLED_SHARE * load.target)
    others = [each for each in without_quota(scenario) if each.traffic is not load.traffic]
    async with scenario.step("the others write on") as step:
        await asyncio.sleep(_WATCH_S)
        least = min(each.rate(_WATCH_S) / each.target for each in others)
        step.title = f"{OTHER}, {LOGS} and the others have {min(least, 1.0):.0%} of their rate"
        if least < BACK_SHARE:
            raise ClusterError(f"not seen: another tenant had {least:.0%} of its throughput")
    scenario.say(f"{FILLER} has used {share}, and is paused alone. The others write on.")


async def _room(scenario: Scenario) -> None:
    scenario.say(f"Now {LOGS} writes more. The volume comes near its limit.")
    _send(scenario, LOGS, _FAST)
    async with scenario.step("room is made before the limit") as step:

        def deleted(document: dict[str, Any]) -> int:
            done = (each["deletions"] for each in document["journal"] if each["kind"] == "end")
            return sum(one["about_bytes"] for each in done for one in each if not one["failure"])

        about = await _answer(scenario, "/v1/relief", deleted)
        before = _available(scenario)
        step.title = f"room is made: about {about / 1e6:.0f} MB of the oldest {LOGS} deleted"
        await until(lambda: _available(scenario) > before + about / 2)
    scenario.say(f"Before the limit, about {about / 1e6:.0f} MB of the oldest {LOGS} were deleted.")
    await asyncio.sleep(_WATCH_S)


async def _factor_stayed(scenario: Scenario, broker_id: int, began: float) -> None:
    async with scenario.step("meanwhile, no volume reached its limit: the factor stayed 1.0"):
        seen = [factor for at, factor in scenario.factors[broker_id] if at >= began]
        if set(seen) != {1.0}:
            raise ClusterError(f"not seen: the factor was {min(seen, default=0.0)} meanwhile")


async def _budget_is_kept_again(scenario: Scenario, cluster: Cluster) -> None:
    load = _load(scenario, FILLER)
    async with scenario.step(f"{FILLER} keeps less, and writes again"):
        await retain(cluster, LITTLE_BYTES)
        await until(lambda: load.rate() >= BACK_SHARE * load.target)
    scenario.say(f"{FILLER} keeps less now, is below its budget, and writes again.")
    await asyncio.sleep(_WATCH_S / 2)


async def _answer(scenario: Scenario, path: str, read: Callable[[dict[str, Any]], Any]) -> Any:  # noqa: ANN401 - as read
    """Ask the sidecar of the filled broker until its answer has what is looked for."""
    while True:
        if found := read((await scenario.sidecars[-1].get(path)).document()):
            return found
        await asyncio.sleep(_ASK_S)


def _available(scenario: Scenario) -> int:
    return min(volume.available_bytes for volume in scenario.volumes)


def _load(scenario: Scenario, tenant: str) -> Load:
    return next(load for load in scenario.loads if tenant in load.name)


def _send(scenario: Scenario, tenant: str, rates: Mapping[str, float]) -> None:
    """Let a tenant write at another rate from now on."""
    old = _load(scenario, tenant)
    old.traffic.bytes_per_s = rates[tenant]
    new = replace(old, target=rates[tenant])
    scenario.loads = tuple(new if load is old else load for load in scenario.loads)


async def _create_logs(broker: Broker, bootstrap: str) -> int:
    """Create the topic with a partition on each volume; return the one on the filled volume."""
    async with Admin(bootstrap) as admin:
        await admin.create_topic(LOGS, assignment=[[broker.id]] * len(broker.volumes))
    folders = [Path(f"/proc/{broker.pid}/root{volume.path}") for volume in broker.volumes]

    def beside_the_filler() -> list[int]:
        (folder,) = (each for each in folders if (each / f"demo-{broker.id}-0").exists())
        found = range(len(folders))
        return [number for number in found if (folder / f"{LOGS}-{number}").exists()]

    await until(lambda: bool(beside_the_filler()))
    return beside_the_filler()[0]


async def _log_requests(cluster: Cluster) -> None:
    admin = KafkaAdmin(bootstrap_servers=addresses(cluster.bootstrap))
    await set_levels(admin, dict.fromkeys(cluster.brokers, "DEBUG"), "kafka.request.logger")
