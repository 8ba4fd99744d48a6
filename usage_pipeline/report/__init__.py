"""The tables as one HTML page, for a person: what was used, what to set, when disks are full.

One file that loads nothing, with plots as SVG and tables to sort. Needs no Spark.

Example: ``report({"gold_usage_1s": rows, ...}, now)`` is the page; a table that is missing or empty
is said to be.
"""

from usage_pipeline.report.document import contents, report
from usage_pipeline.report.rows import ReportError, Row

__all__ = ["ReportError", "Row", "contents", "report"]
