"""Request logs: found, opened, and read into columns."""
