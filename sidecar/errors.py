"""The exceptions that end a command with a message.

An expected failure of a running daemon (a broker that does not answer, a failed poll) is a value
with a kind, never an exception: see ``sidecar.volumes.Failure``. Exceptions are for bugs and for
refusing to start.
"""


class SidecarError(Exception):
    """A command can't do its work. The message says why and what to do, without a traceback."""


class SettingsError(SidecarError):
    """The settings can't be used.

    Attributes:
        problems: one line for each problem, in the documented order of the settings.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ListenError(SidecarError):
    """The daemon can't listen on the configured address."""


class ClusterError(SidecarError):
    """The demo's Kafka cluster did not start, or ended by itself."""


class BrokersError(SidecarError):
    """The brokers did not return the data that a command needs."""


class PlanError(SidecarError):
    """The requested plan of quotas is not possible."""


class CallbackError(SidecarError):
    """The quota callback's jar is missing or can't be copied."""
