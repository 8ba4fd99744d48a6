"""What made-up requests are charged with, against the size that their lines have."""

from collections import defaultdict
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.produce_size import Produce, produce_bytes
from usage_pipeline.kernels.fetch_size import Fetched, fetch_bytes
from usage_pipeline.kernels.line_detail import detail
from usage_pipeline.sample.flows import Flow, flows
from usage_pipeline.sample.lines import Times, drawn_batch, rendered
from usage_pipeline.sample.sizes import charged_bytes

ENDS = [
    times * end + more
    for end in (1 << 7, 1 << 14, 1 << 21)
    for times in (1, 2)
    for more in (-3, -2, -1, 0, 1)
]
FLOWS = [flow for flow in flows(3) if flow.records]


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: f"{flow.shape.api}-{flow.shape.version}")
def test_a_batch_is_sized_as_its_lines_are(flow: Flow) -> None:
    """Lines are of every version, with lengths of 1 byte to 4, at their ends too."""
    rng = np.random.default_rng(5)
    times = Times(rng)
    drawn = drawn_batch(flow, np.arange(len(ENDS), dtype=np.int64) * 10, rng, times)
    batch = replace(drawn, drawn=flow.draw(rng, np.array(ENDS)))
    stamps: dict[int, str] = defaultdict(lambda: "2026-01-05 08:00:00")
    lines = [parse(line.encode()) for line in rendered(batch, stamps, times, 0)]
    assert [_bytes(line) for line in lines if isinstance(line, Line)] == charged_bytes(
        batch
    ).tolist()


def _bytes(line: Line) -> int | None:
    said = detail(line)
    if isinstance(said, Produce):
        return produce_bytes(said, line.api_version, line.client_id)
    answer = msgspec.json.decode(line.body.response, type=Fetched)
    return fetch_bytes(answer, line.api_version)
