"""Tests of sidecar/quotas/request_time."""
