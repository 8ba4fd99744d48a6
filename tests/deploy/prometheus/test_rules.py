"""The alert rules by promtool; each of them is tested, distinct and of real metrics."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.deploy.prometheus.rules import CASES, FOLDER, METRIC, RULES, alerts, documented, rules

SEVERITIES = {"critical", "warning"}


def promtool(*words: str) -> tuple[int, str]:
    """Returns exit code and output; it is part of Debian's prometheus."""
    program = shutil.which("promtool")
    assert program, "promtool is missing: apt-get install -y prometheus"
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_promtool_finds_nothing_in_the_rules() -> None:
    """Syntax and templates are valid, and no rule is there twice."""
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert 0 == code, said


def test_promtool_takes_the_configuration() -> None:
    """It takes the rule files that it names, too."""
    code, said = promtool("check", "config", str(FOLDER / "prometheus.yaml"))
    assert 0 == code, said
    assert f"{len(rules())} rules found" in said


def test_the_configuration_for_large_clusters_is_one_too(tmp_path: Path) -> None:
    """What is commented out drops the volumes' series of all sidecars but a few, and uses TLS."""
    text = (FOLDER / "prometheus.yaml").read_text(encoding="utf-8")
    assert "\n    # metric_relabel_configs:\n    #   - source" in text
    for line in ("metric_relabel_configs", "scheme", "tls_config"):
        text = text.replace(f"    # {line}", f"    {line}")
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / name).touch()
        text = text.replace(f"/etc/prometheus/throttle-sidecar/{name}", str(tmp_path / name))
    text = text.replace("    #   ", "      ").replace("rules/*.yaml", str(RULES))
    (tmp_path / "prometheus.yaml").write_text(text, encoding="utf-8")
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert "https" == job["scheme"]
    assert {"ca_file", "cert_file", "key_file"} == job["tls_config"].keys()
    assert ["target", "drop", "labeldrop"] == [
        each.get("action", "target") for each in job["metric_relabel_configs"]
    ]
    # What only the sidecar of a broker has, such as the headroom after arrivals, is kept of all.
    repeated = "available_bytes fill_bytes_per_second limit_bytes limit_violated online "
    repeated += "stop_line_bytes stop_line_violated total_bytes"
    for rule in job["metric_relabel_configs"][:2]:
        dropped = rule["regex"].partition(";")[0]
        assert {f"kafka_throttle_volume_{each}" for each in repeated.split()} == {
            each for each in documented() if re.fullmatch(dropped, each)
        }
    code, said = promtool("check", "config", str(tmp_path / "prometheus.yaml"))
    assert 0 == code, said


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_alerts_fire_when_they_should(case: Path) -> None:
    """They do not before, after, or for others; their texts have the numbers."""
    code, said = promtool("test", "rules", str(case))
    assert 0 == code, said


@pytest.mark.slow
def test_every_alert_is_seen_to_fire_and_not_to() -> None:
    """The tests in deploy/prometheus/tests have each, by name and severity."""
    fired, silent = set(), set()
    for case in CASES:
        for test in yaml.safe_load(case.read_text(encoding="utf-8"))["tests"]:
            for asked in test["alert_rule_test"]:
                for each in asked["exp_alerts"]:
                    fired.add((asked["alertname"], each["exp_labels"]["severity"]))
                if not asked["exp_alerts"]:
                    silent.add(asked["alertname"])
    assert {(rule["alert"], rule["labels"]["severity"]) for rule in alerts()} == fired
    assert {rule["alert"] for rule in alerts()} == silent


def test_rules_are_of_metrics_that_there_are() -> None:
    """Every name in expressions and texts is in docs/metrics.md."""
    names = {name for rule in rules() for name in METRIC.findall(str(rule))}
    assert set() == names - documented()
    assert len(names) > 10


def test_every_alert_says_who_it_is_for() -> None:
    """It has a severity, a summary and a description; rules of one name differ in a label."""
    for rule in alerts():
        assert rule["labels"]["severity"] in SEVERITIES
        assert {"summary", "description", "runbook_url"} == set(rule["annotations"])
    labels = [(rule["alert"], *sorted(rule["labels"].items())) for rule in alerts()]
    assert {1} == set(Counter(labels).values())
