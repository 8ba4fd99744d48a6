"""Reads a TOML file of the user, with decimal numbers, and refuses what can't be used.

Example: ``produced_gb = 0.1`` is exactly a tenth, and no binary number near it.
"""

import tomllib
from decimal import Decimal
from pathlib import Path

from sidecar.errors import SidecarError


class CostsError(SidecarError):
    """A file of rates, owners or log dirs can't be used."""


def read_toml(path: Path) -> dict[str, object]:
    """Read a file.

    Raises:
        CostsError: the file can't be read, or it is not TOML.
    """
    try:
        return tomllib.loads(path.read_bytes().decode(), parse_float=Decimal)
    except OSError as error:
        raise CostsError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        # tomllib raises other errors for numbers of thousands of digits and for deep nesting.
        raise CostsError(f"{path} is not TOML: {error}") from error
