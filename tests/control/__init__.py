"""Tests of sidecar/control."""
