"""Does to real processes what the schedule has, and then undoes it.

A broker's fault that is due while another broker is still starting is left out. The events note it.

Example: ``Injector(scene, plan).run()`` ends when the last fault has.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Final

from kafka_lab.cluster import Cluster
from kafka_lab.sidecar_processes import start_sidecar
from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError
from tests.chaos.callbacks import CallbackWatch
from tests.chaos.schedule import Action, Fault, Plan, Role

_END_TIMEOUT_S: Final = 60.0
_START_TIMEOUT_S: Final = 120.0
"""A broker that has to recover its logs, beside all that is busy on two cores."""


class Injector:
    """The faults of one run.

    Attributes:
        since: process -> since when it has run undisturbed, by ``now``; one that is away has none.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        callbacks: CallbackWatch,
        settings: Mapping[str, str],
        *,
        now: Callable[[], float],
        note: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> None:
        """Nothing is done yet.

        Args:
            plan: what is to be done.
            cluster: whose processes.
            callbacks: gets to know which brokers run.
            settings: of a sidecar that is started again.
            now: seconds since the beginning of the run.
            note: called with what was done, in words.
            failed: called with a process that can't be started again.
        """
        self._plan = plan
        self._cluster = cluster
        self._callbacks = callbacks
        self._settings = dict(settings)
        self._now = now
        self._note = note
        self._failed = failed
        self.since = {f"{role} {number}": 0.0 for role in Role for number in cluster.brokers}

    async def run(self) -> None:
        """All faults, each at its time; ends with the last one."""
        async with asyncio.TaskGroup() as group:
            for fault in self._plan.faults:
                group.create_task(self._happen(fault), name=str(fault))

    async def _happen(self, fault: Fault) -> None:
        await asyncio.sleep(fault.begin_s - self._now())
        away = self._away(Role.BROKER) if fault.role is Role.BROKER else []
        if fault.process not in self.since or away:
            still = ", ".join(away) or fault.process
            self._note(f"{fault.process}: {fault.action} is left out: {still} is away still")
            return
        del self.since[fault.process]
        self._note(f"{fault.process}: {fault.action} for {fault.end_s - fault.begin_s:.1f} s")
        try:
            if fault.role is Role.BROKER:
                await self._broker(fault)
            else:
                await self._sidecar(fault)
        except ClusterError as error:
            self._failed(f"{fault.process} did not come back: {str(error).splitlines()[0]}")
            return
        self.since[fault.process] = self._now()
        self._note(f"{fault.process} is back")

    def _away(self, role: Role) -> list[str]:
        every = [f"{role} {number}" for number in self._cluster.brokers]
        return [name for name in every if name not in self.since]

    async def _until_end(self, fault: Fault) -> None:
        await asyncio.sleep(fault.end_s - self._now())

    async def _broker(self, fault: Fault) -> None:
        broker_id = fault.number
        cluster = self._cluster
        if fault.action is Action.FREEZE:
            await cluster.pause_broker(broker_id)
            await self._until_end(fault)
            await cluster.resume_broker(broker_id)
            return
        self._callbacks.lose(broker_id)
        await cluster.kill_broker(broker_id, signal.Signals[fault.action.value], _END_TIMEOUT_S)
        await self._until_end(fault)
        await cluster.start_broker(broker_id, _START_TIMEOUT_S)
        self._callbacks.follow(broker_id, cluster.brokers[broker_id].pid)

    async def _sidecar(self, fault: Fault) -> None:
        name = fault.process
        cluster = self._cluster
        await cluster.signal_beside(name, signal.Signals[fault.action.value])
        if fault.action is Action.FREEZE:
            await self._until_end(fault)
            await cluster.signal_beside(name, signal.SIGCONT)
            return
        async with deadline(_END_TIMEOUT_S, f"{name} did not end"):
            await until(lambda: cluster.ended(name) is not None)
        await self._until_end(fault)
        await start_sidecar(cluster, fault.number, self._settings)
