"""An HTML page about the tables: what clients used, which quotas to set, when disks are full.

The page is one file that loads nothing, with plots as SVG and sortable tables. It works without
Spark.

Example: ``report({"gold_usage_1s": rows, ...}, now)`` is the page. If a table is missing or empty,
the page says so.
"""

from usage_pipeline.report.document import contents, report
from usage_pipeline.report.rows import ReportError, Row

__all__ = ["ReportError", "Row", "contents", "report"]
