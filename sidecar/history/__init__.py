"""What this sidecar saw of the cluster's volumes, appended to files for the pipeline.

An observation is a line of JSON, an hour is a file, a closed file is compressed, and the folder has
a bound. A disk that is full, slow or gone costs lines, never a poll.

Example: a sidecar on kafka-0 that listens on port 7070 and polls every minute leaves 24 files a day
such as ``volumes-kafka-0-7070-20260105T08.jsonl.gz``, of 60 lines each.
"""

from sidecar.history.folder import Folder
from sidecar.history.recorder import History

__all__ = ["Folder", "History"]
