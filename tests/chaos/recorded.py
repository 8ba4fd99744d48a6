"""A run as a trace for the auditor (``tests.auditor``): without what sidecars answered."""

from tests.auditor import BrokerSight, Moment, Setup, Trace, VolumeSight
from tests.chaos.course import Course
from tests.chaos.samples import Sample

LOG_DIR = "/d0"
"""The only one of each broker."""


def trace(course: Course) -> Trace:
    """The trace of a run; each callback asks all sidecars."""
    rules = course.bound.rules
    setup = Setup(
        limit_bytes=course.limit_bytes,
        interval_s=rules.interval_s,
        most_bytes_per_s=course.bound.rate,
        once_bytes=course.bound.once,
        pause_s=rules.pause_max_s,
        asks_all=True,
    )
    return Trace(setup, [_moment(course, sample) for sample in course.samples])


def _moment(course: Course, sample: Sample) -> Moment:
    return Moment(
        sample.at_s,
        {number: _broker(sample, number) for number in sample.available},
        {number: sample.steady_s.get(f"sidecar {number}") for number in sample.sidecars},
        sum(each.acknowledged.at(sample.at_s) for each in course.producers if each.acknowledged),
    )


def _broker(sample: Sample, number: int) -> BrokerSight:
    steady_s, callback = sample.steady_s.get(f"broker {number}"), sample.callbacks.get(number)
    volumes = {LOG_DIR: VolumeSight(sample.available[number], steady_s)}
    if callback is None:
        return BrokerSight(volumes=volumes, up_s=steady_s, quiet_s=steady_s)
    return BrokerSight(
        volumes=volumes,
        up_s=steady_s,
        quiet_s=steady_s,
        factor=callback.factor,
        emergency=callback.emergency,
        longest_pause_s=callback.longest_pause_s,
    )
