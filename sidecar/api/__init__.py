"""The HTTP API: reads the board, and publishes an operator's changes on it."""
