"""Judges a recorded run by docs/reliability.md, without any code of the sidecar.

Input is a trace (``trace``): once a second, what each volume had available, whether its broker ran,
and what its callback applied. The real chaos runs and the simulation both write it. What sidecars
published is no part of it, so the auditor can't share a mistake with them.

``python -m tests.auditor TRACE.jsonl`` prints each broken claim.
"""

from tests.auditor.audit import Finding, audit
from tests.auditor.trace import BrokerSight, Moment, Setup, Trace, VolumeSight

__all__ = ["BrokerSight", "Finding", "Moment", "Setup", "Trace", "VolumeSight", "audit"]
