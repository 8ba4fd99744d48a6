"""Which clusters a run is about, and what of its inputs is whose.

Stages handle one cluster at a time, and all that a run writes is committed together. Logs are of
the cluster that their paths name, a volume history of the one that its lines name, and with
``--cluster-id`` both are of that one, while those of others are left out. Logs that nothing names a
cluster of are of the only one that the history names, else of ``default``. Tables never have
``default`` beside named clusters: it would be one of them twice.

Example: logs below ``cluster_id=eu`` and ``cluster_id=us`` are two runs of each stage, and one
commit. Logs that no path names a cluster of, beside a history of MkU3OEVB, are MkU3OEVB's.
"""

from collections.abc import Iterable, Iterator, Sequence
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
    """A run for each cluster, whose files are removed where the caller fails.

    Raises:
        SidecarError: the inputs are not there, or it is not known whose they are.
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
        try:
            yield runs
        except SidecarError:
            # What a kill leaves, upkeep removes in time; this run may be the last.
            for one in runs:
                one.store.discard()
            raise
    finally:
        if history is not None:
            history.readings.unpersist()


def _named(files: Sequence[LogFile], history: History) -> tuple[LogFile, ...]:
    """Logs that no path names a cluster of are of the only one that the history names."""
    if len(history.days) != 1:
        return tuple(files)
    (cluster,) = history.days
    return tuple(
        replace(file, cluster=cluster) if file.cluster == UNNAMED else file for file in files
    )


def _refuse_mixed(
    clusters: Sequence[str], there: Iterable[str], options: Options, *, has_quotas: bool
) -> None:
    named = sorted({*clusters, *there} - {UNNAMED})
    if named and UNNAMED in {*clusters, *there}:
        raise ClusterError(
            f"the tables or what is read are of {', '.join(named)}, and of a cluster that nothing"
            f" names: name it with --cluster-id; {UNNAMED} is the name of what the tables have"
            " without one"
        )
    if len(clusters) > 1 and (has_quotas or options.has_plan):
        what = "--quotas has those" if has_quotas else "--plan has quotas"
        raise InputsError(
            f"{what} of one cluster, and these are of {', '.join(clusters)}: name one with"
            " --cluster-id"
        )
