"""The broker's request log: its lines as values, and following its file."""
