"""Reads the answer of Prometheus' ``/api/v1/query_range``.

Example: the series ``{"metric": {"__name__": "node_filesystem_size_bytes", "instance":
"kafka-3:9100"}, "values": [[1767600000, "100"]]}`` is one point of 100 bytes.
"""

from collections.abc import Callable, Iterator

import msgspec

from sidecar.history.imports.points import DataError, Point, Series, parse_bytes


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    error: str = ""
    data: _Data | None = None
    warnings: list[str] | None = None
    is_partial: bool = False


def prometheus_points(
    file: str, content: bytes, on_warning: Callable[[str], None]
) -> Iterator[Point]:
    """Yield the points of an answer.

    Args:
        file: where the answer is from; the label ``file`` of its series.
        content: the answer, in JSON.
        on_warning: called with each warning of the answer (Thanos: a store did not answer), and if
            the answer is partial (VictoriaMetrics).

    Raises:
        DataError: it is no such answer, or has a value that is not a size.
    """
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except ValueError as error:
        raise DataError(f"{file} is not an answer of Prometheus: {error}") from error
    if answer.data is None:
        raise DataError(f"{file}, field error: Prometheus answered {answer.error!r}")
    if answer.data.result_type != "matrix":
        raise DataError(
            f"{file}, field data.resultType: {answer.data.result_type!r} has no readings over time;"
            " query /api/v1/query_range, with start, end and step"
        )
    partial = ["the answer is partial, because a storage node did not answer"] * answer.is_partial
    for warning in (*(answer.warnings or ()), *partial):
        on_warning(f"{file}: readings may be missing: {warning}")
    for number, each in enumerate(answer.data.result):
        labels = {"file": file, **each.metric}
        series = Series(labels.pop("__name__", ""), tuple(sorted(labels.items())))
        for index, (at, text) in enumerate(each.values):
            place = f"{file}, field data.result[{number}].values[{index}]"
            yield Point(series, at, parse_bytes(text, place), place)
