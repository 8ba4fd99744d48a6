"""Tests of sidecar/producer_ids."""
