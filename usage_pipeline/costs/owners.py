"""Reads the file of who owns users, client-ids and topics (``sidecar.formats.owners``)."""

from pathlib import Path

from sidecar.formats.owners import Owners, owners_in
from usage_pipeline.costs.inputs import CostsError, read_toml


def read_owners(path: Path) -> Owners:
    """Read a file of owners.

    Raises:
        CostsError: the file can't be used; the message names the owner and the list.
    """
    document = read_toml(path)
    try:
        return owners_in(document, str(path))
    except ValueError as error:
        raise CostsError(str(error)) from error
