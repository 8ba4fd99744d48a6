"""The Kafka client: the only package that connects to brokers.

aiokafka provides the connections and the types of message fields. This package adds the pool of
connections, the messages that aiokafka lacks, and the meaning of the answers.
"""

from sidecar.kafka.source import KafkaVolumeSource

__all__ = ["KafkaVolumeSource"]
