"""Tests of the quotas."""
