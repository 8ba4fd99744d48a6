"""What the status page costs a sidecar that nobody looks at."""

import subprocess
import sys


def test_its_code_is_loaded_when_it_is_asked_for() -> None:
    """Not with the daemon."""
    program = (
        "import sys, sidecar.daemon.daemon; print(*sorted({'jinja2', 'fastapi'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "fastapi" == done.stdout.strip()
