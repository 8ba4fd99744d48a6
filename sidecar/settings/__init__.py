"""The settings: from environment, properties and TOML to values that can't be wrong."""

from sidecar.settings.loader import (
    LoadedAdmin,
    examine,
    load,
    read_command_config,
    read_daemon_admin,
)
from sidecar.settings.model import KafkaAdmin, Settings
from sidecar.settings.report import Examined, Loaded, SettingRow, describe
from sidecar.settings.values import HostPort

__all__ = [
    "Examined",
    "HostPort",
    "KafkaAdmin",
    "Loaded",
    "LoadedAdmin",
    "SettingRow",
    "Settings",
    "describe",
    "examine",
    "load",
    "read_command_config",
    "read_daemon_admin",
]
