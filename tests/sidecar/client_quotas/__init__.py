"""Tests of the throttle by client quotas."""
