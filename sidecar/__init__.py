"""A sidecar that keeps Apache Kafka clusters from running out of disk."""

__version__ = "0.1.0"
