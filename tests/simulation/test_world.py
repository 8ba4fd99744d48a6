"""Whole clusters in virtual time: what every seed must show, and what each seed that failed showed.

The runs are processes of their own, since the order of sets goes by Python's hash seed.
"""

import re
import subprocess
import sys

import pytest

from tests.support.examples import mostly_rare


def simulate(*options: str) -> str:
    """What ``python -m tests.simulation`` prints; fails with it when a claim is broken."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout[-20_000:] + done.stderr[-5_000:]
    return done.stdout


@pytest.mark.rare
def test_a_seed_has_one_trace() -> None:
    """Byte for byte, in two processes."""
    digests = [
        re.findall(
            r"ok ([0-9a-f]{12})", simulate("--seeds", "7", "--hours", "0.02", "--spacing", "10")
        )
        for _ in range(2)
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", mostly_rare(["1", "68204937"]))
def test_what_must_hold_holds(seed: str) -> None:
    """With three sidecars, and a fault every 30 s.

    In the last one a client was told to wait for longer than the longest pause: its broker's clock
    had been set back.
    """
    simulate("--seeds", seed, "--hours", "0.1", "--spacing", "30", "--jobs", "1")


@pytest.mark.rare
def test_sidecars_make_room() -> None:
    """And no claim about a deletion breaks."""
    found = simulate("--seeds", "1", "--hours", "0.05", "--relief", "--jobs", "1")
    assert re.search("'DeleteRecords': [1-9]", found)
