"""The settings, read from the environment, properties and TOML into checked values."""

from sidecar.formats.addresses import HostPort
from sidecar.settings.again import (
    ca_certificates,
    need_restart,
    read_again,
    secret_files,
    with_former,
)
from sidecar.settings.convert import token_path
from sidecar.settings.keys import SettingRow
from sidecar.settings.loader import (
    load,
    read_command_config,
    read_daemon_admin,
    read_daemon_values,
)
from sidecar.settings.model import KafkaAdmin, PemFiles, Settings
from sidecar.settings.report import Loaded, describe

__all__ = [
    "HostPort",
    "KafkaAdmin",
    "Loaded",
    "PemFiles",
    "SettingRow",
    "Settings",
    "ca_certificates",
    "describe",
    "load",
    "need_restart",
    "read_again",
    "read_command_config",
    "read_daemon_admin",
    "read_daemon_values",
    "secret_files",
    "token_path",
    "with_former",
]
