"""The error tree: what makes a command refuse.

An expected failure of a running daemon (a broker that does not answer, a poll that failed) is a
value with a kind, never an exception: see ``sidecar.volumes.Failure``. Exceptions are for bugs and
for refusing to start.
"""


class SidecarError(Exception):
    """What a person is told in one line, and what to do about it; never a traceback."""


class SettingsError(SidecarError):
    """The settings can't be used.

    Attributes:
        problems: one line each, in the order in which the settings are documented.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ListenError(SidecarError):
    """An address that the daemon was told to listen on can't be listened on."""


class ClusterError(SidecarError):
    """The demo's Kafka cluster can't be started or has ended by itself."""


class BrokersError(SidecarError):
    """The brokers did not give what a command needs."""


class PlanError(SidecarError):
    """Quotas can't be planned as they were asked for."""


class CallbackError(SidecarError):
    """The quota callback's jar is not there or can't be copied."""
