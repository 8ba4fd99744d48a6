"""Finds request logs, opens them, and reads them into columns."""
