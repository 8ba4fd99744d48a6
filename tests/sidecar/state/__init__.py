"""The state file's tests."""
