"""Tests of kafka_lab/pipeline."""
