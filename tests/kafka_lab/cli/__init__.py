"""Tests of kafka_lab/cli."""
