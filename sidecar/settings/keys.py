"""The names of settings in the environment, in properties and in TOML.

A field's name decides all of them, so none is written twice: the environment has it in capitals
after ``SIDECAR_``, properties with dots after the plugin's prefix, TOML in tables. TOML may be
grouped otherwise than documented, as long as the words are the same in the same order:
``kafka_admin.sasl_mechanism`` and ``kafka.admin.sasl.mechanism`` are one key.

Example: ``storage_check_interval`` is ``SIDECAR_STORAGE_CHECK_INTERVAL``,
``client.quota.callback.static.storage.check.interval`` and ``storage.check_interval``.
"""

import re
from collections.abc import Iterable

from sidecar.settings.fields import About, RawSettings
from sidecar.settings.values import Place

ENVIRONMENT_PREFIX = "SIDECAR_"
PROPERTY_PREFIX = "client.quota.callback.static."
ADMIN_PREFIX = "kafka.admin."
FIELDS = tuple(RawSettings.model_fields)
"""The names of all settings, in the documented order."""

_TABLES = (
    "storage_per_volume_limit",
    "storage_per_volume_soft_limit",
    "storage_per_volume_stop",
    "storage",
    "kafka_admin",
    "throttle_factor",
    "throttle_emergency",
    "http",
    "metrics",
    "history",
    "producer_id_quota",
    "controller_mutations",
    "controller_quota",
    "log",
)
# What Kubernetes injects for a Service whose name starts with "sidecar-".
_SERVICE_VARIABLE = re.compile(
    r".+_(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_.+)?)?)"
)


def about(field: str) -> About:
    """What is known of a setting besides its type."""
    return next(
        item for item in RawSettings.model_fields[field].metadata if isinstance(item, About)
    )


def dotted(field: str) -> str:
    """The setting's one name, with dots."""
    return field.replace("_", ".")


def environment_key(field: str) -> str:
    """The setting's environment variable."""
    return ENVIRONMENT_PREFIX + field.upper()


def property_key(field: str) -> str:
    """The setting's property; "" when it has none."""
    return PROPERTY_PREFIX + dotted(field) if about(field).in_properties else ""


def toml_key(field: str) -> str:
    """The setting's documented key in the TOML file."""
    for table in _TABLES:
        if field.startswith(f"{table}_"):
            return f"{table.replace('storage_', 'storage.')}.{field.removeprefix(f'{table}_')}"
    return field


def name_in(place: Place, field: str) -> str:
    """How a message names a setting that was not set.

    Args:
        place: where the reader sets settings; a file's key is named with the variable.
        field: its name here.
    """
    if place == "command config":
        if field == "kafka_admin_bootstrap_servers":
            return "--bootstrap-server"
        return f"{dotted(field).removeprefix(ADMIN_PREFIX)} in --command-config"
    key = {"properties": property_key, "toml": toml_key}.get(place, environment_key)(field)
    variable = environment_key(field)
    return f"{key} ({variable})" if key not in {"", variable} else variable


def nearest(key: str, known: Iterable[str]) -> str:
    """The known key that is most like an unknown one; of a table, one that is in it."""
    import difflib  # noqa: PLC0415 - 0.2 MB, which only a wrong key needs

    every = list(known)
    within = [name for name in every if name.startswith(f"{key}.")]
    return difflib.get_close_matches(key, within or every, n=1, cutoff=0.0)[0]


def is_injected(variable: str) -> bool:
    """Whether Kubernetes sets this variable for a Service called sidecar."""
    return variable.startswith(("SIDECAR_SERVICE_", "SIDECAR_PORT"))


def looks_injected(variable: str) -> bool:
    """Whether Kubernetes may have set this variable for a Service called sidecar-something."""
    return _SERVICE_VARIABLE.fullmatch(variable) is not None
