"""A file of tenants: one name per line, or TOML with the terms of each tenant.

A plain file has one name per line. "#" begins a comment at the start of a line or after a space,
but not within a name, such as the certificate's subject ``1.2.840.113549.1.9.1=#160d,CN=etl``. In a
file whose name ends in .toml, each tenant is a table under "tenants". It may have a weight, a
minimum and a maximum (percent of one thread).

Example::

    [tenants]
    alice = {}
    bob = { weight = 2, minimum = 50, maximum = 300 }
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sidecar.errors import SettingsError
from sidecar.quotas.request_time.fair_shares import Tenant

_COMMENT: Final = re.compile(r"(?:^|\s)#")
_TERMS: Final = {
    "weight": "weight",
    "minimum": "minimum_percent",
    "maximum": "maximum_percent",
}


def read_tenants(path: Path) -> list[Tenant]:
    """Return the tenants in the order of the file.

    Raises:
        SettingsError: the file can't be used; it lists every problem.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".toml":
            return _from_toml(path, tomllib.loads(text))
    except OSError as error:
        raise SettingsError((f"{path} can't be read: {error.strerror}",)) from error
    except (ValueError, RecursionError) as error:
        # tomllib raises other errors for numbers of thousands of digits and for deep nesting.
        raise SettingsError((f"{path} can't be read: {error}",)) from error
    names = [_COMMENT.split(line, 1)[0].strip() for line in text.splitlines()]
    return [Tenant(name) for name in dict.fromkeys(names) if name]


def _from_toml(path: Path, document: Mapping[str, object]) -> list[Tenant]:
    tables = document.get("tenants")
    if not isinstance(tables, dict) or set(document) != {"tenants"}:
        raise SettingsError((f'{path}: one table "tenants" is expected, with a table for each',))
    tenants: list[Tenant] = []
    problems: list[str] = []
    for name, terms in tables.items():
        try:
            tenants.append(_tenant(name, terms))
        except (TypeError, ValueError) as error:
            problems.append(f"{path}: {error}")
    if problems:
        raise SettingsError(tuple(problems))
    return tenants


def _tenant(name: str, terms: object) -> Tenant:
    if not isinstance(terms, dict):
        raise TypeError(f"{name}: a table is expected, such as {{ weight = 2 }}")
    if unknown := set(terms) - set(_TERMS):
        known = ", ".join(_TERMS)
        raise ValueError(f"{name}: {', '.join(sorted(unknown))} is none of {known}")
    numbers: dict[str, float] = {}
    for term, value in terms.items():
        # True is an int in Python, but not a weight.
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name}: {term} is {value!r}, not a number")
        numbers[_TERMS[term]] = float(value)
    return Tenant(name, **numbers)
