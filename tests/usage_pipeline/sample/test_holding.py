"""Throttle times of samples: Kafka's own arithmetic finds them again from the lines."""

import json
from pathlib import Path

import pytest

from sidecar.quotas.entities import Entity, QuotaKey
from sidecar.quotas.rate import QuotaWindow
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.mutation_counts import TopicSizes
from tests.support.charges import charges
from tests.support.prediction import Charge, Predictor
from usage_pipeline.kernels.line_detail import QuotaChanges, detail
from usage_pipeline.sample import Sample, write_sample

SAMPLE = Sample(6_000_000, brokers=2)
QUOTA_OF_USER = {
    "alice": QuotaKey.PRODUCE,
    "edge": QuotaKey.REQUEST,
    "grace": QuotaKey.CONTROLLER_MUTATION,
}


@pytest.mark.slow
def test_throttle_times_are_found_again(tmp_path: Path) -> None:
    """Each broker's requests of three tenants have bytes, request time and mutations."""
    written = write_sample(tmp_path, SAMPLE)
    quotas = {
        Entity.of(entry["entity"]): dict(entry["quotas"])
        for entry in json.loads(written.quotas.read_text())["quotas"]
    }
    changed = dict(quotas)
    for folder in sorted(written.request_logs.iterdir()):
        expected, predicted = _logged_and_predicted(folder, quotas, changed)
        assert any(expected)
        assert expected == predicted


def _logged_and_predicted(
    folder: Path,
    quotas: dict[Entity, dict[str, float]],
    changed: dict[Entity, dict[str, float]],
) -> tuple[list[int], list[int]]:
    predictor = Predictor(QuotaWindow())
    predictor.set_quotas(quotas)
    sizes = TopicSizes()
    found: list[tuple[Charge, int]] = []
    for line in _lines(folder):
        said = detail(line)
        if isinstance(said, QuotaChanges):
            changed.update({one.entity: {one.key: one.value or 0.0} for one in said.changes})
        found += [
            (charge, line.throttle_ms)
            for charge in charges(line, sizes).charges
            if charge.key is QUOTA_OF_USER.get(line.user)
        ]
    half_ms = (SAMPLE.start_s + SAMPLE.seconds // 2) * 1000
    logged, predicted = [], []
    for charge, throttle_ms in sorted(found, key=lambda each: each[0].at_ms):
        if charge.at_ms >= half_ms:
            predictor.set_quotas(changed)
        logged.append(throttle_ms)
        predicted.append(predictor.charge(charge).throttle_ms)
    return logged, predicted


def _lines(folder: Path) -> list[Line]:
    texts = [path.read_bytes() for path in sorted(folder.iterdir())]
    read = [parse(line) for text in texts for line in text.splitlines()]
    return [line for line in read if isinstance(line, Line)]
