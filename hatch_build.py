"""Puts the runbooks into the wheel, and the quota callback's jar if ``make jar`` has built it.

The daemon serves the runbooks. With the jar, ``throttle-sidecar callback copy`` and the demo work
wherever the wheel is installed. The sdist has both where a checkout has them, so that a wheel built
from the sdist is the same.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_JAR = "deploy/quota-callback/target/throttle-sidecar-quota-callback.jar"
_RUNBOOKS = "docs/runbooks"


class Extras(BuildHookInterface):
    """The hook, by hatchling's interface."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what is included from other folders.

        Args:
            version: "standard", or "editable" for an install that takes all from the checkout.
            build_data: what hatchling asks to change.
        """
        if version != "standard":
            return
        root, include = Path(self.root), build_data["force_include"]
        is_wheel = self.target_name == "wheel"
        if is_wheel:
            include[str(root / _RUNBOOKS)] = "sidecar/runbooks"
        if (jar := root / _JAR).is_file():
            include[str(jar)] = f"sidecar/{jar.name}" if is_wheel else _JAR
