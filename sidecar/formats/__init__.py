"""Reads and writes what people write, such as sizes, durations and addresses, without I/O."""
