"""Gathers the facts of brokers, files, sidecars and Prometheus, each within its own deadline.

Example: a broker hangs, and Prometheus is down. After 10 s the facts have the other brokers, the
sidecars, and a ``NotKnown`` for each of the two.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from sidecar import __version__
from sidecar.budgets.file import BudgetFile
from sidecar.cli.doctor.facts import (
    BY_HISTORY,
    BY_PROMETHEUS,
    NO_PROMETHEUS,
    Alerts,
    Broker,
    Facts,
    NotKnown,
    Refused,
    Relief,
    Volume,
)
from sidecar.cli.doctor.history_rates import DEADLINE_S as HISTORY_DEADLINE_S
from sidecar.cli.doctor.history_rates import history_rates
from sidecar.cli.doctor.quota_findings import DEFAULT_WINDOWS
from sidecar.cli.doctor.room_findings import METADATA, REPORTERS, RESERVE
from sidecar.cli.doctor.sidecars import ask_prometheus, ask_sidecars, volumes_of
from sidecar.cli.doctor.volume_findings import RETENTION
from sidecar.cli.sidecar_client import Address, parse_address
from sidecar.client_quotas import broker_metrics
from sidecar.client_quotas.aiven import aiven_quotas
from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.clock import SteadyClock
from sidecar.daemon.start_files import check_state_folder, read_start_files, token_of
from sidecar.errors import SettingsError
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.broker_configs import Configs, describe_broker_configs
from sidecar.kafka.cluster_rights import ClusterRights, cluster_rights
from sidecar.kafka.expendable import ExpendableTopics
from sidecar.kafka.fed_brokers import fed_brokers
from sidecar.kafka.largest_topics import partitions_by_log_dir
from sidecar.peers.addresses import Addresses
from sidecar.peers.trust import Trust
from sidecar.relief.classes_file import ClassesFile
from sidecar.settings import KafkaAdmin, Loaded, Settings
from sidecar.status.runbooks import names as runbooks
from sidecar.status.strimzi import evidence
from sidecar.throttle.budgets import Budget
from sidecar.throttle.fold import fold_in
from sidecar.throttle.memory import Memory
from sidecar.throttle.misfits import misfits, sentences
from sidecar.throttle.relief import ReliefClass
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure, FailureKind, Observation, Reading

DEADLINE_S: Final = 10.0
_CONFIGS: Final = (
    "client.quota.callback.class",
    "authorizer.class.name",
    RESERVE,
    REPORTERS,
    METADATA,
    *RETENTION,
    *DEFAULT_WINDOWS,
)
_NO_ALERT: Final = {"KAFKA-20746"}

T = TypeVar("T")

Results = Mapping[int, T | Failure] | Failure
"""The results of brokers by id; a failure if the brokers could not be listed."""

Place = tuple[int, str]
"""A broker's id and the path of a log dir."""


async def gather(
    loaded: Loaded,
    sidecars: Sequence[Address],
    prometheus: str | None,
    *,
    away_s: float,
    watch_s: float,
) -> Facts:
    """Gather everything.

    Args:
        loaded: valid settings with brokers and a limit.
        sidecars: the sidecars to ask.
        prometheus: the address of Prometheus; None asks none.
        away_s: how long until somebody frees space, seconds.
        watch_s: how far the two polls are apart, seconds.
    """
    settings, admin = loaded.settings, loaded.settings.kafka_admin
    if admin is None or settings.limit is None:
        raise SettingsError(("nothing to examine: brokers or a limit are not set",))
    facts = _of_files(loaded, admin, away_s)
    peers = [replace(each, tls=sidecars[0].tls) for each in await _peers(settings)]
    asked = tuple(dict.fromkeys((*sidecars, *peers)))
    token = _token(settings)
    platform = aiven_quotas(settings) or KafkaQuotas.of(lambda: admin)
    async with asyncio.TaskGroup() as group:
        polls = group.create_task(_poll_twice(admin, facts.timing.deadline_s, watch_s))
        rights = group.create_task(_guarded(cluster_rights(admin, DEADLINE_S)))
        configs = group.create_task(
            _guarded(describe_broker_configs(admin, None, _CONFIGS, DEADLINE_S))
        )
        quotas = group.create_task(_guarded(platform.read()))
        metrics = group.create_task(_metrics(dict(settings.broker_metrics_urls)))
        answers = group.create_task(asyncio.to_thread(ask_sidecars, asked, token))
        alerts = group.create_task(asyncio.to_thread(_ask_prometheus, prometheus))
        relief = group.create_task(_relief(settings, admin))
        until = time.monotonic() + HISTORY_DEADLINE_S
        history = group.create_task(asyncio.to_thread(history_rates, settings, time.time(), until))
        own = group.create_task(asyncio.to_thread(_own_rates, sidecars))
    facts = replace(
        facts,
        sidecars=answers.result(),
        alerts=alerts.result()[0],
        relief=relief.result(),
        metrics=metrics.result(),
        history=recorded if isinstance(recorded := history.result(), NotKnown) else None,
    )
    if isinstance(seen := polls.result(), Failure):
        return replace(facts, cluster=NotKnown(seen.message), rights=NotKnown("no broker answered"))
    first, last = seen
    rates = (
        ({} if isinstance(recorded, NotKnown) else recorded, BY_HISTORY),
        (alerts.result()[1], BY_PROMETHEUS),
        (own.result(), "the sidecar, now"),
        (_rates_between(first, last), f"two polls {watch_s:g} s apart"),
    )
    volumes = tuple(_volumes(last, settings, rates))
    facts = replace(
        facts,
        cluster_id=None if last.membership is None else last.membership.cluster_id,
        is_strimzi=_is_strimzi(settings, admin, last),
        brokers=tuple(_brokers(last, rights.result(), configs.result())),
        rights=_operations(rights.result()),
        quotas=_unseen(found) if isinstance(found := quotas.result(), Failure) else found,
        volumes=volumes,
        remarks=(*facts.remarks, *_misfits(last, settings.rules)),
        state_problem=facts.state_problem or _on_volume(settings, volumes),
    )
    if not volumes:
        return facts
    nearest = min(volumes, key=lambda each: each.available_bytes - each.limit_bytes)
    partitions, topics = await asyncio.gather(
        _guarded(partitions_by_log_dir(admin, nearest.broker_id, DEADLINE_S)),
        _guarded(fed_brokers(admin, nearest.broker_id, DEADLINE_S)),
    )
    return replace(
        facts,
        partitions=NotKnown(partitions.message)
        if isinstance(partitions, Failure)
        else {(nearest.broker_id, log_dir): count for log_dir, count in partitions.items()},
        topics=_unseen(topics) if isinstance(topics, Failure) else None,
    )


async def _guarded(reading: Awaitable[T | Failure]) -> T | Failure:
    """Turn files that can't be read, and a deadline that was missed, into a failure."""
    try:
        async with asyncio.timeout(2 * DEADLINE_S):
            return await reading
    except SettingsError as error:
        return Failure(FailureKind.TLS, str(error))
    except TimeoutError:
        return Failure(FailureKind.TIMEOUT, f"no answer within {2 * DEADLINE_S:g} s")


async def _metrics(urls: Mapping[int, str]) -> dict[int, float | NotKnown]:
    send = Trust().request
    found = await asyncio.gather(*(broker_metrics.read(url, send) for url in urls.values()))
    rates = (NotKnown(each) if isinstance(each, str) else max(each) for each in found)
    return dict(zip(urls, rates, strict=True))


async def _relief(settings: Settings, admin: KafkaAdmin) -> Relief | None:
    path = settings.relief_file
    if path is None or settings.relief_mode == "off":
        return None
    try:
        classes = ClassesFile(path).load()
        # Each reading is 10 s later: nothing is deleted, so coordinators may be new.
        topics = ExpendableTopics(admin, count(0.0, 10.0).__next__)
    except SettingsError:
        # It is a finding of its own.
        return None
    mode = "dry-run" if settings.mode == "observe" else settings.relief_mode
    relief = Relief(mode, [pattern for each in classes for pattern in each.topics])
    try:
        found = await _guarded(_declared(topics, classes, relief))
    finally:
        await topics.close()
    return replace(relief, problem=found.message) if isinstance(found, Failure) else found


async def _declared(
    topics: ExpendableTopics, classes: Sequence[ReliefClass], relief: Relief
) -> Relief | Failure:
    look = await topics.look(classes, DEADLINE_S)
    if isinstance(look, Failure):
        return look
    names = sorted({topic for topic, _ in look.partitions} | look.left_out.keys())
    found = await topics.examine(look.partitions, classes, 0, DEADLINE_S)
    if isinstance(found, Failure):
        return found
    refused: frozenset[str] | Failure = frozenset()
    if relief.mode == "delete":
        refused = await topics.undeletable(names, DEADLINE_S)
    if isinstance(refused, Failure):
        return refused
    return replace(
        relief,
        topics=sorted({*names, *look.unsuitable}),
        undeletable=sorted(refused),
        left_out={**look.left_out, **look.unsuitable},
        # With classes that ignore groups alone, no group holds anything.
        groups_unknown="" if all(each.ignores_groups for each in classes) else found.groups_unknown,
    )


def _of_files(loaded: Loaded, admin: KafkaAdmin, away_s: float) -> Facts:
    settings = loaded.settings
    problems: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] | None = None
    try:
        read_start_files(settings)
        if settings.budgets_file is not None:
            budgets = BudgetFile(settings.budgets_file).load()
    except SettingsError as error:
        problems = error.problems
    state, state_problem = settings.state_file, ""
    if state is not None:
        try:
            check_state_folder(state)
        except SettingsError as error:
            problems = (*problems, *error.problems)
        if not os.access(state if os.access(state, os.F_OK) else state.parent, os.W_OK):
            state_problem = f"SIDECAR_STATE_FILE: this user can't write {state}"
    return Facts(
        version=__version__,
        target=_target(admin),
        principal=admin.sasl_username or "NAME",
        is_iam=admin.sasl_mechanism == "AWS_MSK_IAM",
        rules=settings.rules,
        timing=Timing(settings.check_interval_s or 60.0, settings.check_interval_minimum_s),
        horizon_s=settings.throttle_horizon,
        away_s=away_s,
        observes=settings.mode == "observe",
        by_volume=settings.scope == "volume",
        alters_quotas=settings.quota_source is not None,
        enforcement=settings.enforcement,
        floor=settings.client_quota_floor,
        by_acls=settings.aiven_project is None,
        remarks=loaded.notices,
        file_problems=problems,
        budgets=budgets,
        state_file=None if state is None else str(state),
        state_problem=state_problem,
    )


def _target(admin: KafkaAdmin) -> str:
    login = "" if admin.security_protocol == "PLAINTEXT" else " --command-config admin.properties"
    return ",".join(map(str, admin.bootstrap_servers)) + login


def _is_strimzi(settings: Settings, admin: KafkaAdmin, seen: Observation) -> bool:
    active = {} if seen.membership is None else seen.membership.active
    found = evidence(active, [each.host for each in admin.bootstrap_servers])
    return settings.platform == "strimzi" or (settings.platform == "auto" and bool(found))


async def _peers(settings: Settings) -> list[Address]:
    """The sidecars of SIDECAR_PEERS; a name may stand for several."""
    names = Addresses(settings.peers, time.monotonic)
    await names.look_up()
    found = []
    for each in names.known:
        address = parse_address(each.url)
        if each.ip is not None and address.scheme == "http":
            # With https, the certificate is for the name.
            address = replace(address, host=each.ip)
        found.append(address)
    return found


def _token(settings: Settings) -> str | None:
    try:
        return token_of(settings)
    except SettingsError:
        # It is a finding of its own.
        return None


def _on_volume(settings: Settings, volumes: Iterable[Volume]) -> str:
    """Why the state file may be on a data volume, as far as this machine has that log dir."""
    state = settings.state_file
    if state is None:
        return ""
    for volume in volumes:
        try:
            same = Path(volume.log_dir).stat().st_dev == state.parent.stat().st_dev
        except OSError:
            continue
        if same:
            return f"SIDECAR_STATE_FILE: {state} is on the file system of {volume}"
    return ""


async def _poll_twice(
    admin: KafkaAdmin, timeout_s: float, apart_s: float
) -> tuple[Observation, Observation] | Failure:
    try:
        async with KafkaVolumeSource(admin, clock=SteadyClock().now) as source:
            first = await source.observe(None, timeout_s)
            if isinstance(first, Failure):
                return first
            await asyncio.sleep(apart_s)
            last = await source.observe(None, timeout_s)
            return last if isinstance(last, Failure) else (first, last)
    except SettingsError as error:
        return Failure(FailureKind.TLS, str(error))


def _brokers(
    seen: Observation,
    rights: Results[ClusterRights],
    configs: Results[Configs],
) -> Iterable[Broker]:
    membership = seen.membership
    if membership is None:
        return
    for broker_id in sorted({*membership.active, *(membership.fenced or {})}):
        answer = seen.answers.get(broker_id)
        found = _one(rights, broker_id)
        values = _one(configs, broker_id)
        yield Broker(
            broker_id,
            problem=answer.message if isinstance(answer, Failure) else "",
            fenced=broker_id not in membership.active,
            configs=NotKnown(values.message) if isinstance(values, Failure) else values,
            kafka=found.kafka if isinstance(found, ClusterRights) else "",
        )


def _unseen(failure: Failure) -> NotKnown:
    is_refused = failure.kind is FailureKind.AUTHORIZATION
    return Refused(failure.message) if is_refused else NotKnown(failure.message)


def _one(results: Results[T], broker_id: int) -> T | Failure:
    """A broker's result, or the failure of all."""
    if isinstance(results, Failure):
        return results
    result = results.get(broker_id, Failure(FailureKind.CONNECT, "it was not asked"))
    return result or Failure(FailureKind.CONNECT, "it reported nothing")


def _operations(rights: Results[ClusterRights]) -> frozenset[str] | NotKnown:
    """What all brokers that answered allow."""
    if isinstance(rights, Failure):
        return NotKnown(rights.message)
    told = [each for each in rights.values() if isinstance(each, ClusterRights)]
    if not told:
        failures = {each.message for each in rights.values() if isinstance(each, Failure)}
        return NotKnown("; ".join(sorted(failures)))
    found = [each.operations for each in told if each.operations is not None]
    return frozenset.intersection(*found) if found else NotKnown("no broker tells the ACLs")


def _misfits(seen: Observation, rules: Rules) -> Iterable[str]:
    memory = fold_in(Memory(), seen, rules)
    return [*sentences(misfits(memory.volumes(), rules))]


def _volumes(
    seen: Observation, settings: Settings, rates: Sequence[tuple[Mapping[Place, float], str]]
) -> Iterable[Volume]:
    limit, line = settings.rules.required_limit, settings.stop_line
    for reading in seen.answers.values():
        if isinstance(reading, Failure):
            continue
        for volume in reading.volumes:
            place = volume.place
            known = [(found[place], by) for found, by in rates if place in found]
            rate, by = max(known, default=(None, ""), key=lambda each: each[0])
            yield Volume(
                *place,
                volume.total_bytes,
                volume.available_bytes,
                limit.judge(volume).threshold_bytes,
                None if line is None else line.judge(volume).threshold_bytes,
                rate,
                by,
            )


def _rates_between(first: Observation, last: Observation) -> dict[Place, float]:
    """(broker, log dir) -> the fill rate between two polls."""
    before = {
        volume.place: (reading.read_at, volume.available_bytes)
        for reading in first.answers.values()
        if isinstance(reading, Reading)
        for volume in reading.volumes
    }
    rates = {}
    for reading in last.answers.values():
        if isinstance(reading, Failure):
            continue
        for volume in reading.volumes:
            place = volume.place
            if place in before and (seconds := reading.read_at - before[place][0]) > 0:
                rates[place] = (before[place][1] - volume.available_bytes) / seconds
    return rates


def _own_rates(sidecars: Sequence[Address]) -> dict[Place, float]:
    """(broker, log dir) -> the fill rate by the first sidecar, which sees all brokers."""
    return {
        (each.get("broker_id", -1), each.get("log_dir", "")): float(rate)
        for each in volumes_of(sidecars[0])
        if isinstance(rate := each.get("fill_bytes_per_second"), int | float)
    }


def _ask_prometheus(url: str | None) -> tuple[Alerts | NotKnown, dict[Place, float]]:
    if url is None:
        return NO_PROMETHEUS, {}
    return ask_prometheus(url, {*runbooks()} - _NO_ALERT)
