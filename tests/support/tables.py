"""The pipeline's tables as other engines see them: by the list of a version's files."""

import json
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError


def files_of(out: Path | str, table: str, storage: dict[str, str] | None = None) -> list[str]:
    """Returns where the files of a table are, of the version that readers pin."""
    manifest = Path(out) / "_manifest.json"
    version = None
    if manifest.exists():
        version = json.loads(manifest.read_text())["tables"].get(table, -1)
    if version == -1:
        return []
    try:
        opened = DeltaTable(f"{out}/{table}", version=version, storage_options=storage)
    except TableNotFoundError:
        return []
    return opened.file_uris()


def of_duckdb(out: Path | str, table: str) -> str:
    """Returns what a query of DuckDB selects from, with what the table is partitioned by."""
    files = ", ".join(f"'{file}'" for file in files_of(out, table))
    return f"read_parquet([{files}], hive_partitioning = true)"
