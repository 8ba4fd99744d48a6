"""Tests of sidecar/mutations."""
