"""The settings: from environment, properties and TOML to values that can't be wrong."""

from sidecar.settings.loaded import Loaded, SettingRow
from sidecar.settings.loader import load
from sidecar.settings.report import describe
from sidecar.settings.values import HostPort, KafkaAdmin, Settings

__all__ = ["HostPort", "KafkaAdmin", "Loaded", "SettingRow", "Settings", "describe", "load"]
