"""What docs/figures.md claims, measured: ``make bench``."""
