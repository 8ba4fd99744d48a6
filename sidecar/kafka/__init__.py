"""The only home of the Kafka client: what a poll sees, read from real brokers.

aiokafka has the connections and the types that messages are made of; the pool over them, the
messages it lacks and the meaning of the answers are ours.
"""

from sidecar.kafka.source import KafkaVolumeSource

__all__ = ["KafkaVolumeSource"]
