"""Tests of sidecar/cli/callback."""
