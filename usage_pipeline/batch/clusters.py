"""Divides a run's inputs among the clusters that they belong to.

Stages handle one cluster at a time, and everything that a run writes is committed together. Logs
belong to the cluster that their paths name, and a volume history to the cluster that its lines
name. With ``--cluster-id``, both belong to that cluster, and inputs of other clusters are left out.
Logs without a name belong to the only cluster that the history names; otherwise they belong to
``default``. Tables never contain ``default`` beside named clusters, because one cluster would then
have two names.

Example: logs below ``cluster_id=eu`` and ``cluster_id=us`` are two runs of each stage, and one
commit. Logs without a name, beside a history of MkU3OEVB, belong to MkU3OEVB.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import SparkSession

from sidecar.errors import SidecarError
from usage_pipeline.batch.run import Inputs, InputsError, Options, Run
from usage_pipeline.ingest.clusters import ClusterError
from usage_pipeline.ingest.paths import LogFile
from usage_pipeline.silver.volume_table import History, volume_history
from usage_pipeline.tables.commits import Pinned
from usage_pipeline.tables.schemas import UNNAMED
from usage_pipeline.tables.store import Store


@contextmanager
def runs_of(
    spark: SparkSession, before: Pinned, inputs: Inputs, options: Options
) -> Iterator[list[Run]]:
    """Return a run for each cluster; if the caller fails, the runs' files are removed.

    Raises:
        SidecarError: an input is missing, or its cluster is not known.
    """
    asked = options.cluster
    history = None if inputs.volumes is None else volume_history(spark, inputs.volumes, asked)
    try:
        files = () if inputs.request_logs is None else inputs.request_logs.files(asked)
        if history is not None:
            files = _named(files, history)
        there = before.clusters()
        read = {file.cluster for file in files} | set(() if history is None else history.days)
        clusters = sorted(read) or ([asked] if asked is not None else there or [UNNAMED])
        _refuse_mixed(clusters, there, options, has_quotas=inputs.quotas is not None)
        runs = [
            Run(
                spark,
                Store(spark, before, cluster),
                inputs,
                options,
                tuple(file for file in files if file.cluster == cluster),
                history if history is not None and cluster in history.days else None,
            )
            for cluster in clusters
        ]
        made = tuple(runs)
        try:
            yield runs
        except SidecarError:
            # Upkeep removes the files of a killed run in time, but this run may be the last.
            for run in runs:
                run.store.discard()
            raise
        finally:
            for run in made:
                if run.changes is not None:
                    run.changes.unpersist()
    finally:
        if history is not None:
            history.readings.unpersist()


def _named(files: Sequence[LogFile], history: History) -> tuple[LogFile, ...]:
    """Assign logs without a name to the only cluster that the history names."""
    if len(history.days) != 1:
        return tuple(files)
    (cluster,) = history.days
    return tuple(
        replace(file, cluster=cluster) if file.cluster == UNNAMED else file for file in files
    )


def _refuse_mixed(
    clusters: Sequence[str], there: Collection[str], options: Options, *, has_quotas: bool
) -> None:
    named = sorted({*clusters, *there} - {UNNAMED})
    if named and UNNAMED in {*clusters, *there}:
        what_to_do = "name it with --cluster-id"
        if UNNAMED in there:
            what_to_do = (
                f"the tables call it {UNNAMED}, so set --cluster-id {UNNAMED} in every run if they"
                " are the same cluster; if not, write to another folder with --out"
            )
        raise ClusterError(
            f"the inputs or the tables belong to {', '.join(named)} and to a cluster without a"
            f" name: {what_to_do}"
        )
    of_one = {
        "--quotas": has_quotas,
        "--plan": options.has_plan,
        "--rates": options.billing is not None,
    }
    what = next((name for name, is_there in of_one.items() if is_there), None)
    if len(clusters) > 1 and what is not None:
        raise InputsError(
            f"{what} applies to one cluster, and the inputs have several:"
            f" {', '.join(clusters)}; name one with --cluster-id"
        )
