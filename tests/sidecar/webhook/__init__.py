"""Tests of sidecar/webhook."""
