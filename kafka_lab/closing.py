"""A context manager that calls ``close`` at its end: ``with Ports() as ports``."""

from typing import Self


class Closing:
    """Has a ``close``, which the context manager calls; it can be called more than once."""

    __slots__ = ()

    def close(self) -> None:
        """Free the resources."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
