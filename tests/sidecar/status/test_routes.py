"""The status page costs a sidecar nothing while nobody opens it."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_its_code_is_loaded_when_it_is_asked_for() -> None:
    """The daemon does not load it."""
    program = (
        "import sys, sidecar.daemon.daemon; print(*sorted({'jinja2', 'fastapi'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "fastapi" == done.stdout.strip()
