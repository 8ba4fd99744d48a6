"""Asking one broker with the credentials of the moment."""

from sidecar.control.tokens import Tokens
from sidecar.daemon.composition import _ask_one_broker
from sidecar.daemon.reload import Credentials
from sidecar.errors import SettingsError
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind


async def test_credentials_that_can_not_be_read_are_a_failure() -> None:
    """They are read each time: a password file that is gone ends no task."""

    async def ask(_admin: KafkaAdmin, _broker_id: int, _deadline_s: float) -> str:
        raise SettingsError(("the file /p can't be read",))

    fetch = _ask_one_broker(Credentials(Tokens(None, lambda: 0.0), KafkaAdmin()), ask, 1.0)
    expected = Failure(FailureKind.AUTHENTICATION, "the file /p can't be read")
    assert expected == await fetch(1)
