"""Computes the charged bytes of generated PRODUCE and FETCH requests, for a whole batch at once.

The pipeline's rules give the size of a line without records. Each line adds its records, and the
additional bytes of their lengths compared with an empty length of one byte.

Example: 24,000 bytes of records in one partition of a PRODUCE version 12 take 24,000 + 2 bytes more
than no records.
"""

import msgspec
import numpy as np

from sidecar.errors import SidecarError
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.produce_size import Produce, produce_bytes
from usage_pipeline.kernels.fetch_size import Fetched, fetch_bytes
from usage_pipeline.kernels.line_detail import detail
from usage_pipeline.sample.flows import Floats
from usage_pipeline.sample.lines import Batch, empty_line
from usage_pipeline.sample.shapes import Ints

_FLEXIBLE_PRODUCE = 9
_FLEXIBLE_FETCH = 12
_FETCHED = msgspec.json.Decoder(Fetched)


def charged_bytes(batch: Batch) -> Floats:
    """Return the charged bytes for each line of a PRODUCE or FETCH flow."""
    shape = batch.flow.shape
    line = parse(empty_line(batch.flow).encode())
    if not isinstance(line, Line):
        raise SidecarError(f"a generated line can't be read: {line.message}")
    fields = detail(line)
    if isinstance(fields, Produce):
        empty = produce_bytes(fields, line.api_version, line.client_id)
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
    charged: Floats = np.asarray(empty + more, np.float64)
    return charged


def _varint(records: Ints) -> Ints:
    """Return the bytes of a length, which is written with 1 added."""
    lengths: Ints = np.searchsorted(1 << np.arange(7, 63, 7), records + 1, side="right") + 1
    return lengths
