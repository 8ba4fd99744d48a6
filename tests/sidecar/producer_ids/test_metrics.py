"""The metrics of producer ids: which users they report, and that each always exists."""

import dataclasses

from sidecar.control.board import Board
from sidecar.peers.addresses import Addresses
from sidecar.peers.exchange import Peers
from sidecar.producer_ids.active_watch import ActiveIdWatch
from sidecar.producer_ids.metrics import MOST_USERS, id_metrics
from sidecar.producer_ids.retained import Retained
from sidecar.producer_ids.service import ProducerIdWatch
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from tests.sidecar.producer_ids.build import CLICKS, REFUSED, SILENT, WatchScene
from tests.sidecar.throttle.build import FakeClock

SETTINGS = ProducerIdSettings()


def watching(rate: float | None, settings: ProducerIdSettings = SETTINGS) -> ProducerIdWatch:
    board = Board(VolumeLimit(Rules(MinAvailableBytes(30), 120.0), 1.0), FakeClock(1000.0))
    return ProducerIdWatch(board, Retained(board), settings, ProducerIdQuota(rate), cleanup_s=60.0)


def reported(
    watch: ProducerIdWatch,
    peers: Peers | None = None,
    active: ActiveIdWatch | None = None,
) -> dict[str, float]:
    """Samples without the prefix, with the user where there is one."""
    return {
        " ".join((sample.name.removeprefix("kafka_throttle_"), *sample.labels.values())): (
            sample.value
        )
        for family in id_metrics(watch, peers, active)
        for sample in family.samples
    }


def test_all_are_there_when_nothing_is_followed() -> None:
    """They are 0, except for those of users, of whom there are none."""
    expected = {
        "producer_ids_dropped_total",
        "producer_ids_filter_bytes",
        "producer_ids_active",
        "producer_partitions_read",
        "producer_partitions_not_read",
        "producer_scans_failing",
        "producer_ids_unknown_owner_total",
        "peers_failing",
        "peer_producer_ids_lost_total",
    }
    assert dict.fromkeys(expected, 0.0) == reported(watching(50))


def test_users_under_a_quota_are_reported_with_what_they_have_left() -> None:
    """The module's example; a user without a quota has no metrics."""
    watch = watching(50)
    for producer_id in range(552):
        watch.seen("bob", producer_id)
    samples = reported(watch)
    assert (-2.0, 144.0) == (
        samples["producer_ids_tokens bob"],
        samples["producer_ids_throttle_time_seconds bob"],
    )
    assert 0 < samples["producer_ids_rate bob"]
    assert 0 < samples["producer_ids_filter_bytes"]
    free = watching(None)
    free.seen("bob", 1)
    assert "producer_ids_tokens bob" not in reported(free)


def test_of_very_many_users_those_with_the_fewest_tokens_are_reported() -> None:
    """The users that there was no room for are counted."""
    settings = dataclasses.replace(SETTINGS, most_users=MOST_USERS + 2)
    watch = watching(50, settings)
    for user in ("zoe", *map(str, range(MOST_USERS + 2))):
        watch.seen(user, 1)
    watch.seen("zoe", 2)
    samples = reported(watch)
    users = [name for name in samples if name.startswith("producer_ids_tokens ")]
    assert MOST_USERS == len(users)
    assert "producer_ids_tokens zoe" in users
    assert 1 == samples["producer_ids_dropped_total"]


def test_what_is_followed_is_reported() -> None:
    """Of these peers one fails and one has lost some."""
    peers = Peers(Addresses(["http://a:1", "http://b:1"], lambda: 0.0), lambda *_: None)
    peers.peers[0].failure = "it answers 500"
    peers.lost = 3
    samples = reported(watching(None), peers)
    assert 1 == samples["peers_failing"]
    assert 3 == samples["peer_producer_ids_lost_total"]


async def test_scans_for_ids_that_write_are_reported() -> None:
    """What was read and what was not is reported, and whether anybody can be asked."""
    scene = WatchScene()
    await scene.see()
    scene.source.failures = {CLICKS: REFUSED}
    scene.source.skipped = 2
    await scene.see((7, 0))
    scene.watch.ids.tick(2_000_000)
    expected = {
        "producer_ids_active": 1,
        "producer_partitions_read": 1,
        "producer_partitions_not_read": 3,
        "producer_scans_failing": 0,
        "producer_ids_unknown_owner_total": 1,
    }
    samples = reported(watching(None), active=scene.watch)
    assert expected == {name: samples[name] for name in expected}
    scene.source.failure = SILENT
    await scene.watch.scan()
    assert 1 == reported(watching(None), active=scene.watch)["producer_scans_failing"]
