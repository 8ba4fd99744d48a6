"""Tests against real Kafka brokers."""
