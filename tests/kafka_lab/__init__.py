"""Tests of the demo's cluster."""
