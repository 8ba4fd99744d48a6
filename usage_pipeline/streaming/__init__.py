"""The first tables as a stream, of a topic or of closed files."""
