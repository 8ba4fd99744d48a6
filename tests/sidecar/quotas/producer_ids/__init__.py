"""Tests of sidecar/quotas/producer_ids."""
