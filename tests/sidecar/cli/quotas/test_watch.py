"""``quotas watch``: its polls and steps, and what it says of them."""

import asyncio
import json
from pathlib import Path

import pytest

from sidecar.cli.quotas.plan_options import PlanOptions
from sidecar.cli.quotas.watch import Watcher
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.request_time.plan_upkeep import Watch
from sidecar.quotas.request_time.quota_plan import TenantKind
from sidecar.request_time.tenants import Source
from tests.sidecar.cli.quotas.conftest import Run
from tests.sidecar.kafka.servers import admin
from tests.sidecar.kafka.servers import bootstrap as address
from tests.support.fake_broker import FakeCluster
from tests.support.fake_quotas import FakeQuotas
from tests.support.waiting import seen

KEY = "request_percentage"
STABLE_MS = 300_000


def watcher(cluster: FakeCluster, *, as_default: bool = False) -> Watcher:
    """A watch that waits for five minutes and moves a quota by a fifth at most."""
    asked = PlanOptions(tenants_from="scram", as_default=as_default, capacity_percent=6400.0)
    source = Source("scram", TenantKind.USERS)
    watch = Watch(STABLE_MS, 0.2)
    reach = admin(address(cluster))
    return Watcher(reach, asked, source, watch, dry_run=False, as_json=True)


def test_one_poll_sets_the_plan(run: Run, quotas: FakeQuotas) -> None:
    """Each tenant's share is printed with what it was."""
    quotas.scram = {"ann", "bob"}
    quotas.quotas = {Entity("ann"): {KEY: 500.0}}
    result = run("watch", "--tenants-from", "scram", "--once")
    assert 0 == result.exit_code, result.output
    assert {Entity("ann"): {KEY: 550.0}, Entity("bob"): {KEY: 550.0}} == quotas.quotas
    assert "2 tenants, 0 not counted yet\n" in result.stdout
    assert "  set: user 'ann': 500 -> 550\n" in result.stdout
    assert "  set: user 'bob': none -> 550\n" in result.stdout


def test_warnings_name_the_tenant(run: Run, quotas: FakeQuotas) -> None:
    """The plan has warnings, and so has what is outside it; JSON has them too."""
    quotas.scram = {"ann"}
    quotas.quotas = {Entity("carol"): {KEY: 500.0}}
    words = ["watch", "--tenants-from", "scram", "--once", "--dry-run", "--reserve", "1099.5"]
    said = "user 'carol': keeps 500 %"
    result = run(*words)
    assert "Warning: ann: 0.5 % is under 1 %\n" in result.stderr
    assert f"Warning: {said}" in result.stderr
    warnings = json.loads(run(*words, "--json").stdout)["warnings"]
    assert 1 == sum(line.startswith(said) for line in warnings)


async def test_warnings_are_said_once(
    quotas: FakeQuotas, capsys: pytest.CaptureFixture[str]
) -> None:
    """Changed warnings are said again."""
    quotas.scram = {"ann"}
    async with quotas.of(FakeCluster().add(1)) as cluster:
        it = watcher(cluster)
        for now_ms in (0, 1, 2):
            assert await it.observe(now_ms)
            quotas.scram |= {"bob"}
    assert 1 == capsys.readouterr().err.count("Warning: users that ")


def test_a_dry_run_sets_nothing(run: Run, quotas: FakeQuotas) -> None:
    """It says what it would set."""
    quotas.scram = {"ann"}
    result = run("watch", "--tenants-from", "scram", "--once", "--dry-run")
    assert 0 == result.exit_code
    assert "  would be set: user 'ann': none -> 1100\n" in result.stdout
    assert [] == quotas.requests


def test_a_step_is_no_larger_than_was_said(run: Run, quotas: FakeQuotas) -> None:
    """A step is a tenth of the quota: 500 to 550 of the 1,100."""
    quotas.scram = {"ann"}
    quotas.quotas = {Entity("ann"): {KEY: 500.0}}
    run("watch", "--tenants-from", "scram", "--once", "--largest-change", "10")
    assert {Entity("ann"): {KEY: 550.0}} == quotas.quotas


async def test_the_articles_variable_number_of_tenants(
    quotas: FakeQuotas, capsys: pytest.CaptureFixture[str]
) -> None:
    """100 tenants have 64 %; 15 more count after the wait, and then all have 55.7 %."""
    quotas.scram = {f"tenant {n}" for n in range(100)}
    async with quotas.of(FakeCluster().add(1)) as cluster:
        it = watcher(cluster, as_default=True)
        seen = []
        for now_ms, more in ((0, 0), (30_000, 15), (STABLE_MS, 15), (30_000 + STABLE_MS, 15)):
            quotas.scram |= {f"new {n}" for n in range(more)}
            assert await it.observe(now_ms)
            seen.append(quotas.quotas[Entity(DEFAULT)][KEY])
    assert [64.0, 64.0, 64.0, 55.7] == seen
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(100, 0), (100, 15), (100, 15), (115, 0)] == [
        (step["tenants"], step["on_hold"]) for step in steps
    ]


async def test_who_is_gone_loses_the_quota_and_others_get_it(quotas: FakeQuotas) -> None:
    """Each step is a fifth: 3,200 to 3,840, and so on to 6,400; bob's is removed."""
    quotas.scram = {"ann", "bob"}
    async with quotas.of(FakeCluster().add(1)) as cluster:
        it = watcher(cluster)
        await it.observe(0)
        assert 3200.0 == quotas.quotas[Entity("bob")][KEY]
        quotas.scram = {"ann"}
        await it.observe(1000)
        assert 2 == len(quotas.quotas)
        for step in range(5):
            await it.observe(1000 + STABLE_MS + step)
    assert {Entity("ann"): {KEY: 6400.0}} == quotas.quotas


async def test_nothing_is_changed_while_it_is_not_known_who_is_there(
    quotas: FakeQuotas, capsys: pytest.CaptureFixture[str]
) -> None:
    """With nobody there or no answer, it says so, and the next poll makes the change."""
    async with quotas.of(FakeCluster().add(1)) as cluster:
        it = watcher(cluster)
        assert not await it.observe(0)
        quotas.scram = {"ann"}
        quotas.describe_error = type(quotas.describe_error).cluster_authorization_failed
        assert not await it.observe(1)
        assert {} == quotas.quotas
        quotas.describe_error = type(quotas.describe_error).none
        assert await it.observe(STABLE_MS)
    assert {Entity("ann"): {KEY: 6400.0}} == quotas.quotas
    said = capsys.readouterr().err.splitlines()
    assert 2 == sum("nothing is changed: " in line for line in said)


async def test_nothing_is_changed_in_another_cluster(
    quotas: FakeQuotas, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address leads to another one for a while."""
    quotas.scram = {"ann"}
    strange = FakeQuotas(scram={"bob"})
    async with (
        quotas.of(FakeCluster().add(1)) as cluster,
        strange.of(FakeCluster(cluster_id="stranger").add(1)) as stranger,
    ):
        it = watcher(cluster)
        assert await it.observe(0)
        known = it.admin
        it.admin = known.model_copy(update={"bootstrap_servers": (address(stranger),)})
        assert not await it.observe(STABLE_MS)
        it.admin = known
        assert await it.observe(2 * STABLE_MS)
    assert {Entity("ann"): {KEY: 6400.0}} == quotas.quotas
    assert [] == strange.requests
    said = capsys.readouterr().err
    assert "nothing is changed: " in said
    assert "stranger" in said


async def test_what_was_not_set_is_reported_and_tried_again(
    quotas: FakeQuotas, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next poll tries it again, since it still differs from the plan."""
    quotas.scram = {"ann", "bob"}
    quotas.refused_when_set = {Entity("bob")}
    async with quotas.of(FakeCluster().add(1)) as cluster:
        it = watcher(cluster)
        assert not await it.observe(0)
        quotas.refused_when_set = set()
        assert await it.observe(1)
    assert {3200.0} == {values[KEY] for values in quotas.quotas.values()}
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert ["bob"] == [each["entity"]["user"] for each in first["not_done"]]


async def test_it_polls_every_interval_and_reports_only_what_is_new(
    quotas: FakeQuotas, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three polls that change nothing after the first are two lines."""
    quotas.scram = {"ann"}
    async with quotas.of(FakeCluster().add(1)) as cluster:
        it = watcher(cluster)
        it.as_json = False
        for now_ms in range(4):
            await it.observe(now_ms)
    lines = [line.split(" ", 1)[-1] for line in capsys.readouterr().out.splitlines()]
    assert [
        "1 tenant, 0 not counted yet",
        " set: user 'ann': none -> 6400",
        "1 tenant, 0 not counted yet",
    ] == lines


async def test_it_goes_on_until_it_is_stopped(quotas: FakeQuotas) -> None:
    """Tenants that come are seen by a later poll."""

    async def share() -> float:
        return quotas.quotas.get(Entity(DEFAULT), {}).get(KEY, 0.0)

    quotas.scram = {"ann"}
    async with quotas.of(FakeCluster().add(1)) as cluster:
        it = watcher(cluster, as_default=True)
        it.watch = Watch(0, 1.0)
        task = asyncio.create_task(it.run(0.01, once=False))
        await seen("ann's share", share, lambda reported: reported == 6400.0)
        quotas.scram = {"ann", "bob"}
        await seen("half of it", share, lambda reported: reported == 3200.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tenants", "5"], "--tenants-from"),
        ([], "--tenants-from"),
        (["--tenants-from", "scram", "--interval", "PT0S"], "--interval must be longer"),
        (["--tenants-from", "scram", "--stabilization", "5 min"], "--stabilization"),
        (["--tenants-from", "scram", "--largest-change", "0"], "--largest-change"),
    ],
)
def test_options_that_make_no_watch(run: Run, options: list[str], said: str) -> None:
    """The exit code is 2, before any broker is asked."""
    result = run("watch", *options, "--once")
    assert (2, "") == (result.exit_code, result.stdout)
    assert said in result.stderr


def test_a_file_is_read_at_each_poll(run: Run, quotas: FakeQuotas, tmp_path: Path) -> None:
    """One that can't be read changes nothing; with --once the exit code is then 1."""
    quotas.quotas = {Entity("ann"): {KEY: 5.0}}
    result = run("watch", "--tenants-from", str(tmp_path / "gone"), "--once")
    assert 1 == result.exit_code
    assert "nothing is changed: " in result.stderr
    assert {Entity("ann"): {KEY: 5.0}} == quotas.quotas
