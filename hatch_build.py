"""Puts the quota callback's jar into wheel and sdist, if ``make jar`` has built it.

With it ``throttle-sidecar callback copy`` and the demo work wherever the wheel is installed. The
sdist has it where a checkout has it, so that a wheel built from the sdist is the same.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_JAR = "deploy/quota-callback/target/throttle-sidecar-quota-callback.jar"


class CallbackJar(BuildHookInterface):
    """The hook, by hatchling's interface."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the jar among what is included.

        Args:
            version: "standard", or "editable" for an install that takes all from the checkout.
            build_data: what hatchling asks to change.
        """
        jar = Path(self.root, _JAR)
        if version == "standard" and jar.is_file():
            at = f"sidecar/{jar.name}" if self.target_name == "wheel" else _JAR
            build_data["force_include"][str(jar)] = at
