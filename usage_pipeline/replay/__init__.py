"""Replays of quotas: gold_replay."""
