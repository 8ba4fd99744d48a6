"""Reads and writes sizes, durations, addresses, PEM, JAAS and Java properties, without I/O."""
