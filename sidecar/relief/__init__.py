"""Makes room on volumes by deleting the oldest records of declared topics."""
