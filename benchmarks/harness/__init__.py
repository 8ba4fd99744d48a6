"""The frame of the benchmarks that need a cluster: command line, rounds, results, tables, pages.

A benchmark is a ``Benchmark`` (``program.py``): its parts and arms, the tasks that measure them,
and the Markdown that its results make. The harness measures one task after another, keeps each
result as a file, and writes the tables into a page of ``benchmarks/results``.
"""
