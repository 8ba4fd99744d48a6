"""What the made-up PRODUCE and FETCH requests are charged with, a whole batch at once.

A line without records is sized as the pipeline sizes it; each line then has its records more, and
the bytes that their lengths take beyond the one of an empty one.

Example: 24,000 bytes of records in one partition of a PRODUCE version 12 take 24,000 + 2 bytes more
than none.
"""

import msgspec
import numpy as np

from sidecar.errors import SidecarError
from sidecar.requestlog.fetch_size import fetch_bytes
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.produce_size import produce_bytes
from sidecar.requestlog.request_detail import detail
from sidecar.requestlog.wire import Fetched, Produce
from usage_pipeline.sample.flows import Floats
from usage_pipeline.sample.lines import Batch, empty_line
from usage_pipeline.sample.shapes import Ints

_FLEXIBLE_PRODUCE = 9
_FLEXIBLE_FETCH = 12
_FETCHED = msgspec.json.Decoder(Fetched)


def charged_bytes(batch: Batch) -> Floats:
    """Of each line of a PRODUCE or FETCH flow."""
    shape = batch.flow.shape
    line = parse(empty_line(batch.flow).encode())
    if not isinstance(line, Line):
        raise SidecarError(f"a made-up line can't be read: {line.message}")
    said = detail(line)
    if isinstance(said, Produce):
        empty = produce_bytes(said, line.api_version, line.client_id)
        columns = [np.asarray(column, np.int64) for column in batch.drawn.request[1::2]]
        flexible = shape.version >= _FLEXIBLE_PRODUCE
    else:
        answer = _FETCHED.decode(line.body.response)
        empty = fetch_bytes(answer, line.api_version)
        columns = [batch.drawn.records]
        flexible = shape.version >= _FLEXIBLE_FETCH
    if empty is None:
        raise SidecarError(f"the size of {shape.api} {shape.version} is not known")
    more = sum((_varint(column) - 1 if flexible else 0) + column for column in columns)
    found: Floats = np.asarray(empty + more, np.float64)
    return found


def _varint(records: Ints) -> Ints:
    """The bytes of a length, which is written with 1 added."""
    found: Ints = np.searchsorted(1 << np.arange(7, 63, 7), records + 1, side="right") + 1
    return found
