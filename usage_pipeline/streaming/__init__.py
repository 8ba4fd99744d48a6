"""Streams the first tables from a topic or from closed files."""
