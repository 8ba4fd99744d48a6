#!/usr/bin/env python3
"""The rules of deploy/prometheus/rules/ as a resource of the Prometheus operator, to its output.

Kustomize can't put a file into a resource's fields, so the result is kept in the repository: make
kubernetes-rules writes it, and a test says when it is not of the rules any more.

    tools/prometheus_rule.py > deploy/kubernetes/monitoring/prometheus-rule.yaml
"""

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_RULES = _ROOT / "deploy" / "prometheus" / "rules"
_HEAD = """\
# Made by make kubernetes-rules of deploy/prometheus/rules/: change them there.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: throttle-sidecar
  labels:
    app.kubernetes.io/name: throttle-sidecar
spec:
"""


def main() -> None:
    """Write it."""
    groups = [line for file in sorted(_RULES.glob("*.yaml")) for line in _groups(file)]
    text = "  groups:\n" + "".join(groups) if groups else "  groups: []\n"
    sys.stdout.write(_HEAD + text)


def _groups(file: Path) -> list[str]:
    """What follows "groups:" in a file, one level further in; comments stay."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    begin = lines.index("groups:\n") + 1
    return [line if line == "\n" else f"  {line}" for line in lines[begin:]]


if __name__ == "__main__":
    main()
