"""From request logs and volume history to usage, what-if replays, quotas and disk forecasts.

PySpark, on one machine or on a cluster; a distribution of its own, which the daemon never
imports. Every stage is a function of DataFrames and of the times passed in; only
``batch.job`` and ``streaming`` read and write. What the tables are is in ``tables.schemas``.
"""
