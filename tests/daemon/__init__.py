"""Tests of sidecar/daemon."""
