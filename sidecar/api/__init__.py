"""The HTTP API: reads the board, and folds an operator's word into it."""
