"""Tests of sidecar.relief."""
