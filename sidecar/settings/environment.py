"""Settings from environment variables ``SIDECAR_*``.

An unknown one is a mistake, except those that Kubernetes injects into every pod for a Service
called sidecar (``SIDECAR_SERVICE_*``, ``SIDECAR_PORT*``).

Example: ``SIDECAR_LOG_LEVL=debug`` is refused, naming ``SIDECAR_LOG_LEVEL``.
"""

from collections.abc import Mapping

from sidecar.settings import keys
from sidecar.settings.foreign import ADMIN_KEYS, admin_verdict
from sidecar.settings.raw_values import Entry, Reading

ORIGIN = "environment"


def read_environment(environ: Mapping[str, str]) -> Reading:
    """Sort the variables in our namespace; all others are somebody else's."""
    fields = {keys.environment_key(field): field for field in keys.FIELDS}
    foreign = {
        keys.environment_key(keys.ADMIN_PREFIX + key).replace(".", "_"): key for key in ADMIN_KEYS
    }
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    notices: list[str] = []
    for variable, value in sorted(environ.items()):
        if not variable.startswith(keys.ENVIRONMENT_PREFIX) or keys.is_injected(variable):
            continue
        if variable in fields:
            entries[fields[variable]] = Entry(value, variable, ORIGIN)
        elif variable in foreign:
            verdict = admin_verdict(foreign[variable], value)
            (problems if verdict.refused else notices).append(f"{variable} {verdict.sentence}")
        else:
            problems.append(_unknown(variable, [*fields, *foreign]))
    return Reading(entries, tuple(problems), tuple(notices))


def _unknown(variable: str, known: list[str]) -> str:
    problem = f"{variable} is not a setting; the nearest is {keys.nearest(variable, known)}"
    if keys.looks_injected(variable):
        problem += " (if Kubernetes injects it, set enableServiceLinks: false in the pod)"
    return problem
