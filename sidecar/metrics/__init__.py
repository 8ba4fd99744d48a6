"""Prometheus collectors over the board, and their exposition."""
