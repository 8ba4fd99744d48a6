"""Silver."""
