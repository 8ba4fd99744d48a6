"""Tests of planning and setting quotas."""
