# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Signs tokens for AWS_MSK_IAM, with the package that Amazon publishes for it.

A token is a signed URL, which a broker of MSK accepts as a token of OAUTHBEARER for 15 minutes.
AWS's own variables, files and the machine's role give the credentials; they are looked up for each
token, so renewed ones are used. Only the machine's role needs the network. The package is imported
when this login is configured.

Example: a token that was signed at 0 s is used for 720 s, by all connections.
"""

from collections.abc import Callable

from sidecar.kafka.client.extras import needed
from sidecar.kafka.client.failures import TokenError
from sidecar.kafka.client.oauth_tokens import USED_SHARE, SharedTokens, Token
from sidecar.threads import SharedCalls

LIFE_S = 900.0
_CALLS = SharedCalls("AWS tokens")


class AwsTokens(SharedTokens):
    """Provides tokens for a region's brokers."""

    def __init__(self, region: str, clock: Callable[[], float]) -> None:
        """Import the package.

        Raises:
            SettingsError: it is not installed.
        """
        super().__init__(clock)
        self._region = region
        self._signer = needed("aws_msk_iam_sasl_signer.MSKAuthTokenProvider", "aws", "AWS_MSK_IAM")

    async def _request(self) -> Token:
        asked_at = self._clock()
        try:
            value, _ = await _CALLS.call(
                self._region, self._signer.generate_auth_token, self._region
            )
        except Exception as error:
            # botocore has many errors, and the signer fails with an AttributeError without any
            # credentials. A text could have a part of a credentials file.
            why = type(error).__name__
            raise TokenError(
                f"no token for AWS_MSK_IAM: AWS's variables, files and the machine's role gave no"
                f" usable credentials ({why})"
            ) from error
        return Token(value, asked_at + USED_SHARE * LIFE_S)
