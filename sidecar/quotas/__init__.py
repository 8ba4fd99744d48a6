"""Kafka's quotas as functions of data and time (KIP-13, KIP-124, KIP-599, KIP-936)."""
