"""Converts the types of columns from Spark's SQL to Arrow.

Example: ``arrow_type("array<struct<topic:string>>")`` is a list of structs with a string.
"""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from usage_pipeline.tables.schemas import Column

_TYPES: Final = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "binary": pa.binary(),
}


def arrow_type(spark_type: str) -> pa.DataType:
    """Return the Arrow type of a column."""
    if spark_type.startswith("array<"):
        return pa.list_(pa.field("element", arrow_type(spark_type[len("array<") : -1])))
    if spark_type.startswith("struct<"):
        fields = (field.split(":") for field in spark_type[len("struct<") : -1].split(","))
        return pa.struct([pa.field(name, arrow_type(kind)) for name, kind in fields])
    if spark_type.startswith("decimal("):
        precision, scale = spark_type[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _TYPES[spark_type]


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the schema of a table's columns."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def schema_of(columns: str) -> pa.Schema:
    """Return the schema of columns in Spark's SQL, such as "dt date, hours array<int>"."""
    fields = (column.split(" ") for column in columns.split(", "))
    return pa.schema([(name, arrow_type(kind)) for name, kind in fields])
