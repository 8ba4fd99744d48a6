"""How values are written: sizes, durations, addresses, PEM, JAAS and Java properties; all pure."""
