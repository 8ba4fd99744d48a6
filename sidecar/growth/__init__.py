"""Who fills volumes that are near or past a limit."""
