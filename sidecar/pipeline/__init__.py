"""From request logs and volume history to usage, what-if replays, quotas and disk forecasts.

PySpark, on one machine or on a cluster; an optional extra, ``throttle-sidecar[pipeline]``, which
the daemon never imports. Every stage is a function of DataFrames and of the times passed in; only
``job`` reads and writes. Tables are in ``tables``.
"""
