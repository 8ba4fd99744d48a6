"""Configurations of a simulated cluster's brokers and the levels of their loggers, by kio."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i8

from tests.sidecar.requestlog.lines import line
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest, encode

DESCRIBE_CONFIGS = 32
INCREMENTAL_ALTER_CONFIGS = 44
BROKER = 4
BROKER_LOGGER = 8

NO_TIME = timedelta(0)


@dataclass
class FakeConfigs:
    """What the brokers of a cluster report of themselves.

    Attributes:
        configs: broker id -> its configurations.
        loggers: broker id -> its loggers' levels.
        refused: broker id -> the error that it answers everything with.
        deaf: brokers that say they have set a level, and have not.
        request_logs: broker id -> its request log, which gets a line for each description while
            its logger is at DEBUG.
        request_log_time: the beginning of such a line.
        altered: the (broker id, logger, level) that were set, in order.
    """

    configs: dict[int, dict[str, str | None]] = field(default_factory=dict)
    loggers: dict[int, dict[str, str]] = field(default_factory=dict)
    refused: dict[int, ErrorCode] = field(default_factory=dict)
    deaf: set[int] = field(default_factory=set)
    request_logs: dict[int, Path] = field(default_factory=dict)
    request_log_time: bytes = b"[2026-11-20 10:00:00,000] "
    altered: list[tuple[int, str, str]] = field(default_factory=list)

    def of(self, cluster: FakeCluster) -> FakeCluster:
        """Let a cluster's brokers answer with these."""
        cluster.answer(DESCRIBE_CONFIGS, 4, self._describe)
        return cluster.answer(INCREMENTAL_ALTER_CONFIGS, 1, self._alter)

    def _describe(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        asked = request.decoded.resources[0]
        # Levels change between two questions that are the same bytes.
        broker.answers.clear()
        self._log(broker.broker_id, request.client_id)
        kio = load_payload_module(DESCRIBE_CONFIGS, 4, EntityType.response)
        values = self.loggers if int(asked.resource_type) == BROKER_LOGGER else self.configs
        mine = values.get(broker.broker_id, {})
        code = self._error(broker, asked.resource_name)
        result = kio.DescribeConfigsResult(
            error_code=code,
            error_message=None if code is ErrorCode.none else "no",
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=()
            if code is not ErrorCode.none
            else _configs(kio, mine, asked.configuration_keys),
        )
        return encode(kio.DescribeConfigsResponse(throttle_time=NO_TIME, results=(result,)))

    def _alter(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        asked = request.decoded.resources[0]
        broker.answers.clear()
        kio = load_payload_module(INCREMENTAL_ALTER_CONFIGS, 1, EntityType.response)
        code = self._error(broker, asked.resource_name)
        if code is ErrorCode.none:
            assert BROKER_LOGGER == asked.resource_type
            for each in asked.configs:
                assert 0 == each.config_operation
                self.altered.append((broker.broker_id, each.name, each.value))
                if broker.broker_id not in self.deaf:
                    self.loggers[broker.broker_id][each.name] = each.value
        response = kio.AlterConfigsResourceResponse(
            error_code=code,
            error_message=None if code is ErrorCode.none else "no",
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
        return encode(
            kio.IncrementalAlterConfigsResponse(throttle_time=NO_TIME, responses=(response,))
        )

    def _log(self, broker_id: int, client_id: str) -> None:
        file = self.request_logs.get(broker_id)
        if file is not None and "DEBUG" in self.loggers[broker_id].values():
            described = {"resources": [{"resourceName": str(broker_id)}]}
            text = line(DESCRIBE_CONFIGS, client_id=client_id, request=described)
            with file.open("ab") as opened:
                opened.write(self.request_log_time + text.partition(b"] ")[2] + b"\n")

    def _error(self, broker: FakeBroker, resource_name: str) -> ErrorCode:
        if (refused := self.refused.get(broker.broker_id)) is not None:
            return refused
        # So a broker answers that may be asked, but is asked for another one.
        is_own = resource_name == str(broker.broker_id)
        return ErrorCode.none if is_own else ErrorCode.invalid_request


def _configs(kio: Any, values: dict[str, Any], keys: Sequence[str] | None) -> tuple[Any, ...]:
    return tuple(
        kio.DescribeConfigsResourceResult(
            name=name,
            value=value,
            read_only=False,
            config_source=i8(4),
            is_sensitive=value is None,
            synonyms=(),
            config_type=i8(3),
            documentation=None,
        )
        for name, value in values.items()
        if keys is None or name in keys
    )
