"""Brokers that are killed: a healthy one blocks nothing, a full one holds the throttle."""

import signal
from pathlib import Path

import pytest

from sidecar.demo.cluster import Cluster
from tests.integration.conftest import Start
from tests.integration.daemon import FULL_BYTES, Daemon, Document, seconds, settings
from tests.integration.waiting import seen

TOKEN = "a-token"


def with_changes(tmp_path: Path) -> dict[str, str]:
    """Settings so that a daemon keeps its state and takes changes."""
    (tmp_path / "token").write_text(TOKEN)
    return {
        "STATE_FILE": str(tmp_path / "state.json"),
        "TOKEN_FILE": str(tmp_path / "token"),
    }


async def outlasts(daemon: Daemon, validity_s: float) -> None:
    """Wait until the violating reading is older than the validity, and polls still succeed."""

    async def age_s() -> float:
        volumes, document = await daemon.volumes(), await daemon.factor()
        (read_at,) = [each["read_at"] for each in volumes.values() if each["limit_violated"]]
        return seconds(read_at, document["computed_at"])

    await seen("an older reading", age_s, lambda age_s: age_s > 1.5 * validity_s)
    assert (0.0, "observation") == effect(await daemon.factor())


def effect(document: Document) -> tuple[float, str]:
    return document["factor"], document["source"]


async def test_a_dead_healthy_broker_blocks_nothing(kafka: Cluster, start: Start) -> None:
    """Killed and fenced: no new decision; its volumes leave the metrics until it is back."""
    daemon = await start(kafka, settings(kafka.bootstrap))
    before = await daemon.decides(1.0)
    everything = set((await daemon.metrics()).volumes("total_bytes"))
    of_the_dead = {(1, volume.path) for volume in kafka.brokers[1].volumes}
    assert of_the_dead < everything
    await kafka.kill_broker(1)
    await daemon.shows_state(1, "fenced")
    metrics = await daemon.metrics()
    assert everything - of_the_dead == set(metrics.volumes("total_bytes"))
    assert everything - of_the_dead == set(metrics.volumes("online"))
    assert (2.0, 4.0) == (metrics.value("active_brokers"), metrics.value("active_log_dirs"))
    await kafka.start_broker(1)
    await daemon.shows_broker(
        1, "answers again", lambda broker: broker["last_seen"] and not broker["last_failure"]
    )
    assert everything == set((await daemon.metrics()).volumes("total_bytes"))
    after = await daemon.factor()
    assert (1.0, "observation") == effect(after)
    assert before["generation"] == after["generation"]
    assert 0.0 == (await daemon.metrics()).value("fallback_applied_total")


async def test_a_fenced_full_broker_holds_the_throttle_until_it_is_forgotten(
    kafka: Cluster, start: Start, tmp_path: Path
) -> None:
    """Beyond the validity: 0.0, although nobody answers for it; an operator's word releases it."""
    environ = settings(
        kafka.bootstrap,
        THROTTLE_FACTOR_VALIDITY_DURATION="PT3S",
        **with_changes(tmp_path),
    )
    daemon = await start(kafka, environ)
    await daemon.decides(1.0)
    await kafka.occupy(1, 0, FULL_BYTES)
    full = await daemon.decides(0.0)
    assert 401 == (await daemon.ask("/v1/brokers/1", "DELETE")).status_code
    answer = await daemon.ask("/v1/brokers/1", "DELETE", TOKEN)
    assert 409 == answer.status_code, "it is active and answers"
    await kafka.kill_broker(1)
    await daemon.shows_state(1, "fenced")
    await outlasts(daemon, 3.0)
    held = await daemon.factor()
    assert full["generation"] == held["generation"]
    assert "the broker is fenced" in held["reason"]
    assert [(1, kafka.brokers[1].volumes[0].path)] == [
        (each["broker_id"], each["log_dir"]) for each in held["violations"]
    ]
    answer = await daemon.ask("/v1/brokers/1", "DELETE", TOKEN)
    assert (200, 1.0) == (answer.status_code, answer.json()["factor"])
    released = await daemon.decides(1.0)
    assert held["generation"] + 1 == released["generation"]
    # Not only until the next poll.
    await seen("a later poll", daemon.factor, lambda d: d["computed_at"] > released["computed_at"])
    assert (1.0, "observation") == effect(await daemon.factor())


async def test_a_restarted_sidecar_still_holds_until_the_broker_answers(
    kafka: Cluster, start: Start, tmp_path: Path
) -> None:
    """Beyond the validity, by the state file; the full broker comes back with free space: 1.0."""
    environ = settings(
        kafka.bootstrap,
        THROTTLE_FACTOR_VALIDITY_DURATION="PT3S",
        **with_changes(tmp_path),
    )
    daemon = await start(kafka, environ)
    await daemon.decides(1.0)
    await kafka.occupy(1, 1, FULL_BYTES)
    await daemon.decides(0.0)
    await kafka.kill_broker(1)
    await daemon.shows_state(1, "fenced")
    assert 0 == await daemon.end()
    # The space is free again, but the broker that could say so is down.
    await kafka.occupy(1, 1, 0)
    await daemon.start()
    await daemon.decides(0.0)
    await outlasts(daemon, 3.0)
    assert (1.0, "observation") not in map(effect, await daemon.decisions())
    await kafka.start_broker(1)
    await daemon.decides(1.0)
    assert "active" == (await daemon.brokers())[1]["state"]


async def test_a_killed_sidecar_starts_with_what_it_had_decided(
    kafka: Cluster, start: Start, tmp_path: Path
) -> None:
    """No moment of 1.0 after kill -9 of the sidecar, though it can't see the full broker."""
    environ = settings(kafka.bootstrap, **with_changes(tmp_path))
    daemon = await start(kafka, environ)
    await daemon.decides(1.0)
    await kafka.occupy(1, 1, FULL_BYTES)
    full = await daemon.decides(0.0)
    await kafka.kill_broker(1)
    assert -signal.SIGKILL == await daemon.end(signal.SIGKILL)
    await daemon.start()
    await daemon.shows_state(1, "fenced")
    (begun,) = await daemon.decisions()
    assert (0.0, "observation") == effect(begun)
    assert begun["computed_at"] < begun["changed_at"]
    assert full["since"] == (await daemon.factor())["since"]


@pytest.mark.parametrize("any_kafka", ["3.9.1"], indirect=True)
async def test_a_departed_full_broker_holds_the_throttle_for_the_validity(
    any_kafka: Cluster, start: Start
) -> None:
    """Kafka 3.9 lists no fenced brokers: gone from the list, its last reading expires."""
    validity_s = 8.0
    environ = settings(any_kafka.bootstrap, THROTTLE_FACTOR_VALIDITY_DURATION=f"PT{validity_s}S")
    daemon = await start(any_kafka, environ)
    await daemon.decides(1.0)
    await any_kafka.occupy(1, 0, FULL_BYTES)
    await daemon.decides(0.0)
    await any_kafka.kill_broker(1)
    departed = await daemon.shows_state(1, "departed")
    held = await daemon.factor()
    assert (0.0, "observation") == effect(held)
    assert "the broker is gone" in held["reason"]
    await daemon.decides(1.0)
    changes = await daemon.decisions()
    assert "observation" == changes[-1]["source"]
    stopped_s = seconds(departed["last_seen"], changes[-1]["changed_at"])
    assert validity_s < stopped_s < validity_s + 1.0
    await seen("nothing left of it", daemon.brokers, lambda brokers: 1 not in brokers)
    assert {0} == {broker_id for broker_id, _ in await daemon.volumes()}
