r"""A line of the volume history.

Example: the sidecar kafka-0-7070 saw at 0.5 s of 1970 that broker 1 has 25 of 100 bytes available
on /d1 and reports no sizes of /d2. That is one line::

    {"time":"1970-01-01T00:00:00.500Z","origin":"kafka-0-7070","brokers":[1],
     "volumes":[{"broker_id":1,"log_dir":"/d1","total_bytes":100,"available_bytes":25}],
     "offline":[{"broker_id":1,"log_dir":"/d2"}],"cluster_id":"MkU3OEVBNTcwNTJENDM2Qg"}

``time`` is when the observation was complete. A broker may have answered up to the poll's deadline
(10 s) earlier, or, if it is slow, in an earlier poll. ``brokers`` are the brokers that answered.
``cluster_id`` is Kafka's; it is missing while the sidecar does not know it.

Other programs may write lines too, such as a line for each volume. ``read_line`` checks a line, and
``merged`` makes one of the lines that have the same time and origin.
"""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from sidecar.volumes import Observation, Reading, Volume

_WHAT_IT_IS: Final = {
    "time": 'the time is text in ISO 8601, such as "2026-01-05T08:00:00.500Z"',
    "origin": 'the origin is the name of the writer, such as "kafka-0-7070"',
    "total_bytes": "a size is a whole number of bytes",
    "available_bytes": "a size is a whole number of bytes",
}
"""What a field that is often wrong has to contain."""
_FIELD: Final = re.compile(r"(?: - at `\$\.?([^`]*)`)$")
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")


class LogDirLine(msgspec.Struct, gc=False):
    """A log dir without sizes."""

    broker_id: int
    log_dir: str


class VolumeLine(msgspec.Struct, gc=False, omit_defaults=True):
    """A line."""

    time: str
    origin: str
    brokers: list[int]
    volumes: list[Volume]
    offline: list[LogDirLine]
    cluster_id: str | None = None


_DECODER: Final = msgspec.json.Decoder(VolumeLine)


class LineError(ValueError):
    """A line that is not one of a volume history. The message names the field."""


def read_line(text: bytes) -> tuple[float, VolumeLine]:
    """Return a line and its time, in epoch seconds. A time without an offset is in UTC.

    Raises:
        LineError: a field is missing or has another form, or a size can't be.
    """
    try:
        line = _DECODER.decode(text)
    except msgspec.ValidationError as error:
        raise LineError(_describe(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LineError(f"it is not a whole line of JSON ({error})") from error
    try:
        at = datetime.fromisoformat(line.time)
    except ValueError as error:
        raise LineError(f"field time: {line.time!r}; {_WHAT_IT_IS['time']}") from error
    for number, volume in enumerate(line.volumes):
        if not 0 <= volume.available_bytes <= volume.total_bytes:
            raise LineError(
                f"field volumes[{number}].available_bytes: {volume.available_bytes} is not between"
                f" 0 and the total_bytes, {volume.total_bytes}"
            )
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp(), line


def merged(lines: Sequence[VolumeLine]) -> VolumeLine:
    """Return one line with the volumes of several lines; of two sizes, the later line's apply."""
    first, *others = lines
    if not others:
        return first
    sizes = {(each.broker_id, each.log_dir): each for line in lines for each in line.volumes}
    offline = {(each.broker_id, each.log_dir): each for line in lines for each in line.offline}
    return VolumeLine(
        time=first.time,
        origin=first.origin,
        brokers=sorted({broker for line in lines for broker in line.brokers}),
        volumes=list(sizes.values()),
        offline=[each for key, each in offline.items() if key not in sizes],
        cluster_id=first.cluster_id,
    )


def to_line(
    observation: Observation, origin: str, observed_s: float, cluster_id: str | None = None
) -> bytes:
    """Return an observation as a line with its newline; ``observed_s`` is in epoch seconds."""
    readings = [each for each in observation.answers.values() if isinstance(each, Reading)]
    readings.sort(key=lambda reading: reading.broker_id)
    line = VolumeLine(
        time=_time(observed_s),
        origin=origin,
        brokers=[reading.broker_id for reading in readings],
        volumes=[volume for reading in readings for volume in reading.volumes],
        offline=[
            LogDirLine(reading.broker_id, each.log_dir)
            for reading in readings
            for each in reading.offline
        ],
        cluster_id=cluster_id,
    )
    return msgspec.json.encode(line) + b"\n"


def _describe(problem: str) -> str:
    """Describe msgspec's ``Expected `int`, got `float` - at `$.volumes[0].total_bytes``."""
    place = _FIELD.search(problem)
    what = problem[: place.start()] if place else problem
    path = place[1] if place else ""
    if missing := _MISSING.fullmatch(what):
        path, what = ".".join(filter(None, (path, missing[1]))), "it is missing"
    hint = _WHAT_IT_IS.get(path.rpartition(".")[2])
    where = f"field {path}: " if path else ""
    return f"{where}{what}; {hint}" if hint else f"{where}{what}"


def _time(epoch_s: float) -> str:
    whole_s, milliseconds = divmod(int(epoch_s * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole_s))}.{milliseconds:03d}Z"
