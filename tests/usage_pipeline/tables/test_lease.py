"""One writer at a time in a folder of tables."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.lease import STALE_S, LockedError, leased, refuse_leased


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.parse(str(tmp_path / "tables"))


def lease(host: str, process: int, renewed: int = 0) -> bytes:
    """Returns what another run has left."""
    return msgspec.json.encode(
        {"holder": "another run", "host": host, "process": process, "renewed": renewed}
    )


def unwanted(_: float) -> None:
    pytest.fail("it waited")


@pytest.mark.slow
def test_a_second_run_is_refused_by_the_name_of_the_first(folder: Folder) -> None:
    """It is so for as long as the first one has the lease; both processes are alive."""
    with (
        leased(folder, "process 7", renewed_s=0.05),
        pytest.raises(LockedError, match=r"process 7 writes to .*/tables; wait"),
        leased(folder, "process 8"),
    ):
        pytest.fail("both had it")
    with leased(folder, "process 8"):
        assert ["_lease.json"] == folder.names()
    assert [] == folder.names()


def test_a_lease_that_is_not_renewed_is_taken_over(folder: Folder) -> None:
    """Who waits measures the time by itself; a renewal in it counts, whoever's clock is wrong."""
    slept: list[float] = []
    folder.replace("_lease.json", lease("elsewhere", 1))
    refuse_leased(folder, slept.append)
    assert STALE_S == sum(slept)

    def renewing(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 5:
            folder.replace("_lease.json", lease("elsewhere", 1, renewed=1))

    assert [] == folder.names()
    slept.clear()
    folder.replace("_lease.json", lease("elsewhere", 1))
    with pytest.raises(LockedError, match="another run writes"):
        refuse_leased(folder, renewing)
    assert 5 == len(slept)
    folder.replace("_lease.json", b"torn")
    refuse_leased(folder, unwanted)


def test_nobody_waits_for_a_process_that_is_gone(folder: Folder) -> None:
    """It was killed on this machine, and the scheduler starts the next at once."""
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    folder.replace("_lease.json", lease(socket.gethostname(), int(gone.stdout)))
    refuse_leased(folder, unwanted)
    slept: list[float] = []
    folder.replace("_lease.json", lease(socket.gethostname(), os.getpid()))
    refuse_leased(folder, slept.append)
    assert slept


@pytest.mark.parametrize("damaged", [b"", b"{", b'{"holder": "\xff"}'])
def test_a_damaged_lease_is_removed(folder: Folder, damaged: bytes) -> None:
    """It names nobody who could be asked."""
    folder.replace("_lease.json", damaged)
    refuse_leased(folder, unwanted)
    assert folder.read("_lease.json") is None
