"""Spark and its workers, and what paths and stores say."""
