r"""The operator's rules that map labels to a broker and a log dir.

Example: the rule ``persistentvolumeclaim=(?P<dir>data-\d+)-my-cluster-kafka-(?P<broker>\d+)`` and
the log dir ``/var/lib/kafka/{dir}/kafka-log{broker}`` map ``data-0-my-cluster-kafka-3`` to broker 3
and ``/var/lib/kafka/data-0/kafka-log3``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.volumes import LogDir

_FIELD: Final = re.compile(r"\{(\w+)\}")
BROKER: Final = "broker"


@dataclass(frozen=True, slots=True)
class VolumeNames:
    """Maps labels to a volume.

    Attributes:
        rules: labels, each with a pattern that its whole value must match. Without ``broker``, one
            of the patterns has a group of this name, which matches digits.
        log_dir: the log dir. The name of a group or label in braces stands for its value.
        broker: the broker of all series; None to use the group.
    """

    rules: tuple[tuple[str, re.Pattern[str]], ...]
    log_dir: str
    broker: int | None = None

    @property
    def labels(self) -> frozenset[str]:
        """The names that may be labels."""
        return frozenset((*(label for label, _ in self.rules), *_FIELD.findall(self.log_dir)))

    def volume_of(self, labels: Mapping[str, str]) -> LogDir | None:
        """Return broker and log dir; None if a rule does not match or a name has no value."""
        values = dict(labels)
        for label, pattern in self.rules:
            match = pattern.fullmatch(labels.get(label, ""))
            if match is None:
                return None
            values |= {name: text or "" for name, text in match.groupdict().items()}
        if self.broker is not None:
            values[BROKER] = str(self.broker)
        if not values[BROKER].isdecimal() or not set(_FIELD.findall(self.log_dir)) <= set(values):
            return None
        return int(values[BROKER]), _FIELD.sub(lambda field: values[field[1]], self.log_dir)
