"""Tests of what prints the figures, not of the figures."""
