"""The answer of Prometheus' ``/api/v1/query_range``."""

import json

import pytest

from sidecar.history.imports.points import DataError, Point, Series
from sidecar.history.imports.prometheus import prometheus_points

METRIC = {"__name__": "node_filesystem_size_bytes", "instance": "kafka-3:9100"}


def answer(*values: tuple[float, str], kind: str = "matrix", **fields: object) -> bytes:
    data = {"resultType": kind, "result": [{"metric": METRIC, "values": values}]}
    return json.dumps({"status": "success", "data": data, **fields}).encode()


def points(content: bytes, warnings: list[str]) -> list[Point]:
    return list(prometheus_points("a.json", content, warnings.append))


def test_points_have_their_labels_and_place() -> None:
    """The name of the metric is the series' name, and the file is a label."""
    series = Series(METRIC["__name__"], (("file", "a.json"), ("instance", "kafka-3:9100")))
    expected = [
        Point(series, 60.0, 100, "a.json, field data.result[0].values[0]"),
        Point(series, 120.5, 90, "a.json, field data.result[0].values[1]"),
    ]
    warnings: list[str] = []
    assert expected == points(answer((60, "100"), (120.5, "9e1"), isPartial=False), warnings)
    assert not warnings


def test_an_answer_that_may_lack_readings_is_said_to() -> None:
    """Thanos and VictoriaMetrics answer without what a store or a storage node has."""
    warnings: list[str] = []
    points(answer(warnings=["no store"]), warnings)
    points(answer(isPartial=True), warnings)
    assert [
        "a.json: readings may be missing: no store",
        "a.json: readings may be missing: the answer is partial, because a storage node did not"
        " answer",
    ] == warnings


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (answer((60, "NaN")), r"a.json, field data.result\[0\].values\[0\]: 'NaN' is not a number"),
        (answer(kind="vector"), "field data.resultType: 'vector' .* query /api/v1/query_range"),
        (b'{"status":"error","error":"bad query"}', "field error: Prometheus .*'bad query'"),
        (b'{"status":"\xff"}', "a.json is not an answer of Prometheus"),
        (b"<html>", "a.json is not an answer of Prometheus"),
        (answer((60, "1"))[:-4], "a.json is not an answer of Prometheus: Input data was truncated"),
        (answer((60, "1")).replace(b'"1"', b"1"), r"Expected `str`.*result\[0\].values\[0\]\[1\]"),
    ],
)
def test_what_is_wrong_names_file_and_field(content: bytes, expected: str) -> None:
    """And what to do, where it is known."""
    with pytest.raises(DataError, match=expected):
        points(content, [])
