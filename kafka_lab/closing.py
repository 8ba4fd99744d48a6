"""What has to be closed, as a context manager: ``with Ports() as ports`` closes them at its end."""

from typing import Self


class Closing:
    """Has a ``close``, which its context manager calls; more than once is harmless."""

    __slots__ = ()

    def close(self) -> None:
        """Free what it has."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
