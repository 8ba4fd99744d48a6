"""``make mutate`` on a busy machine."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.rare


@pytest.mark.timeout(600)
def test_time_without_a_core_kills_no_mutant() -> None:
    """Tests whose timers ran out while they waited for a core would fail without a mutant too."""
    ended = subprocess.run(
        [sys.executable, "-m", "tools.mutate", "sidecar/quotas/token_bucket.py", "--sample=1"],
        env=os.environ | {"PYTEST_TIMEOUT": "0.001"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (ended.returncode, ended.stderr), ended.stdout
