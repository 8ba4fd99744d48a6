"""Tests of the Kafka client."""
