"""What docs/moving-from-strimzi.md shows: the plugin's properties, and an example of them."""

import re

from tests.docs.markdown import page, tables

PAGE = "moving-from-strimzi"
(TABLE,) = [table for table in tables(PAGE) if table.header[0] == "property"]
ROWS = [row for row in TABLE.rows if row["property"] != "kafka.admin.*"]
(EXAMPLE,) = [
    block
    for block in re.findall(r"```properties\n(.*?)```", page(PAGE), re.DOTALL)
    if "StaticQuotaCallback" in block
]
