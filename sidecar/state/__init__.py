"""Keeps decision, last volumes, override and records of capabilities on disk for a restart."""

from sidecar.state.file import Damaged, StateFile, drop_record

__all__ = ["Damaged", "StateFile", "drop_record"]
