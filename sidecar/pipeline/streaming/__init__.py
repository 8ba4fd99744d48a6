"""The first tables as a stream, while logs grow."""
