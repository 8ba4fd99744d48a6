"""Tests of sidecar/metrics."""
