"""What the tables are, and how they are written: all of a run's, or none."""
