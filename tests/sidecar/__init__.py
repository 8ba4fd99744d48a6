"""Tests of sidecar/, in the same tree."""
