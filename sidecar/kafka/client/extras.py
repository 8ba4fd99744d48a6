"""Imports packages that only some logins and files need; each comes with an extra of this project.

Example: AWS_MSK_IAM without its package ends the start with the line that installs it.
"""

import importlib
from typing import Any

from sidecar.errors import SettingsError


def needed(module: str, extra: str, what: str) -> Any:  # noqa: ANN401 - any module
    """Return a module that an extra installs.

    Args:
        module: its name.
        extra: the extra of this project that installs it.
        what: what needs it, for the message.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        text = f"{what} needs a package that is not installed"
        raise SettingsError(
            (f"{text} ({error}). In a checkout, run: pip install '.[{extra}]'",)
        ) from error
