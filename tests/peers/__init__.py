"""Tests of sidecar/peers."""
