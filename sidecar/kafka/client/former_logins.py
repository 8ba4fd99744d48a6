"""Whether brokers accept only the former password, certificate and key.

Example: the file has a new password, and neither of two brokers knows it. The log has one warning.
When the second broker accepts the new password, the log says that each broker does.
"""

import logging
from collections.abc import Iterable

_log = logging.getLogger(__name__)


class FormerLogins:
    """Follows the last logins of all connections.

    Attributes:
        refusal: why a broker refuses the current credentials, while it accepts the former ones; ""
            if none does.
    """

    def __init__(self) -> None:
        self.refusal = ""

    def note(self, refusals: Iterable[str | None]) -> None:
        """Take the last logins of all connections.

        Args:
            refusals: why a broker refused the current credentials and accepted the former ones;
                "" if it accepted the current ones; None if it has not been asked.
        """
        known = sorted({each for each in refusals if each is not None}, reverse=True)
        if not known or bool(known[0]) == bool(self.refusal):
            return
        self.refusal = known[0]
        if self.refusal:
            _log.warning(
                "%s; the broker still accepts the former password, certificate and key, and the "
                "sidecar uses them until the broker accepts the new ones",
                self.refusal,
            )
        else:
            _log.info("each broker accepts the new password, certificate and key")
