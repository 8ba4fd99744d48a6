"""Capability: a throttle by Kafka's client quotas, for brokers without the quota callback."""
