r"""A line of the volume history.

Example: the sidecar kafka-0-7070 saw at 0.5 s of 1970 that broker 1 has 25 of 100 bytes available
on /d1 and reports no sizes of /d2. That is one line::

    {"time":"1970-01-01T00:00:00.500Z","origin":"kafka-0-7070","brokers":[1],
     "volumes":[{"broker_id":1,"log_dir":"/d1","total_bytes":100,"available_bytes":25}],
     "offline":[{"broker_id":1,"log_dir":"/d2"}],"cluster_id":"MkU3OEVBNTcwNTJENDM2Qg"}

``time`` is when the observation was complete. A broker may have answered up to the poll's deadline
(10 s) earlier, or, if it is slow, in an earlier poll. ``brokers`` are the brokers that answered.
``cluster_id`` is Kafka's; it is missing while the sidecar does not know it.
"""

import time

import msgspec

from sidecar.volumes import Observation, Reading, Volume


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


def _time(epoch_s: float) -> str:
    whole_s, milliseconds = divmod(int(epoch_s * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole_s))}.{milliseconds:03d}Z"
