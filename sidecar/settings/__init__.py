"""The settings: from environment, properties and TOML to values that can't be wrong."""

from sidecar.settings.loaded import Examined, Loaded, SettingRow
from sidecar.settings.loader import examine, load
from sidecar.settings.report import describe
from sidecar.settings.values import HostPort, KafkaAdmin, Settings

__all__ = [
    "Examined",
    "HostPort",
    "KafkaAdmin",
    "Loaded",
    "SettingRow",
    "Settings",
    "describe",
    "examine",
    "load",
]
