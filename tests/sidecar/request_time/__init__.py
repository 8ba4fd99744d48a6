"""Tests of sidecar/request_time."""
