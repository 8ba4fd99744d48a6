"""The volume history: this sidecar's observations, appended to files for the pipeline.

Each observation is a line of JSON, and each hour has a file. The sidecar compresses closed files
and keeps the folder below a bound. If the disk is full, slow or gone, lines are lost, but polls
continue.

Example: a sidecar on kafka-0 that listens on port 7070 and polls every minute leaves 24 files a day
such as ``volumes-kafka-0-7070-20260105T08.jsonl.gz``, with 60 lines each.
"""

from sidecar.history.folder import Folder
from sidecar.history.recorder import History

__all__ = ["Folder", "History"]
