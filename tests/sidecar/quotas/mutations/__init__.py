"""Tests of sidecar/quotas/mutations."""
