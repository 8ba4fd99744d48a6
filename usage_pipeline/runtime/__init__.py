"""Spark sessions, their workers, and access to local and remote paths."""
