"""Running one benchmark in a process of its own, so that none pays for what another left behind."""

import importlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from benchmarks.rows import Row


def measure_apart(name: str) -> list[Row]:
    """The figures of ``benchmarks.NAME``; raises what it raises."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as process:
        return process.submit(_measure, name).result()


def _measure(name: str) -> list[Row]:
    rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run()
    return rows
