"""``python -m benchmarks.pipeline``: the pipeline beside a bare scan and beside its peers.

Ratios are to S, a warm bare scan of the same files by Spark in the same run, on the same cores.
"""
