"""Settings from the environment."""

import pytest

from sidecar.settings.sources import read_environment
from tests.sidecar.settings.support import ADMIN


def test_our_variables_are_taken_and_others_ignored() -> None:
    """What isn't SIDECAR_* is somebody else's; the key and the origin are recorded."""
    reading = read_environment(
        {"SIDECAR_LOG_LEVEL": "debug", "PATH": "/bin", "sidecar_log_level": "x", "SIDECAR": "x"}
    )
    entry = reading.entries["log_level"]
    assert ({"log_level"}, []) == (set(reading.entries), reading.problems)
    assert ("debug", "SIDECAR_LOG_LEVEL", "environment") == (entry.value, entry.key, entry.origin)


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("SIDECAR_LOG_LEVL", "SIDECAR_LOG_LEVEL"),
        ("SIDECAR_CHECK_INTERVAL", "SIDECAR_STORAGE_CHECK_INTERVAL"),
        ("SIDECAR_KAFKA_ADMIN_SASL_PASSWORT", "SIDECAR_KAFKA_ADMIN_SASL_PASSWORD"),
        ("SIDECAR_KAFKA_ADMIN_REQUEST_TIMEOUT", "SIDECAR_KAFKA_ADMIN_REQUEST_TIMEOUT_MS"),
        ("SIDECAR_Log_Level", "SIDECAR_LOG_LEVEL"),
    ],
)
def test_an_unknown_variable_names_the_nearest(variable: str, nearest: str) -> None:
    """A misspelt setting is never silently without effect, and its value is not shown."""
    (problem,) = read_environment({variable: "hunter2"}).problems
    assert f"{variable} is not a setting; the nearest is {nearest}" == problem


def test_kubernetes_variables_of_our_service_are_ignored() -> None:
    """A Service called sidecar injects these into every pod of its namespace."""
    reading = read_environment(
        {
            "SIDECAR_SERVICE_HOST": "10.0.0.1",
            "SIDECAR_SERVICE_PORT": "7070",
            "SIDECAR_SERVICE_PORT_HTTP": "7070",
            "SIDECAR_PORT": "tcp://10.0.0.1:7070",
            "SIDECAR_PORT_7070_TCP_ADDR": "10.0.0.1",
            "SIDECAR_PORT_7070_TCP_PROTO": "tcp",
        }
    )
    assert ({}, [], []) == (reading.entries, reading.problems, reading.notices)


@pytest.mark.parametrize(
    "variable", ["SIDECAR_PORT", "SIDECAR_PORT_METRICS", "SIDECAR_SERVICE_URL", "SIDECAR_PORTS"]
)
def test_other_variables_of_a_port_or_service_are_not_ignored(variable: str) -> None:
    """Kubernetes sets SIDECAR_PORT to a URL, and injects none of the others."""
    (problem,) = read_environment({variable: "8080"}).problems
    assert f"{variable} is not a setting" in problem
    assert "Kubernetes" not in problem


@pytest.mark.parametrize(
    "variable", ["SIDECAR_METRICS_SERVICE_HOST", "SIDECAR_METRICS_PORT_7070_TCP_ADDR"]
)
def test_variables_of_another_service_get_a_hint(variable: str) -> None:
    """A Service called sidecar-metrics looks like a mistake, but the hint says what to do."""
    (problem,) = read_environment({variable: "x"}).problems
    assert "enableServiceLinks: false" in problem


def test_the_java_clients_other_keys_are_known() -> None:
    """Their names are in capitals too: those that tune are noted, a class is refused."""
    tuning = f"{ADMIN}REQUEST_TIMEOUT_MS"
    handler = f"{ADMIN}SASL_LOGIN_CALLBACK_HANDLER_CLASS"
    reading = read_environment({tuning: "5", handler: "com.example.Handler"})
    assert [tuning] == [notice.split()[0] for notice in reading.notices]
    assert [handler] == [problem.split()[0] for problem in reading.problems]
