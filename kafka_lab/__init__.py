"""A real local Kafka cluster, its traffic, and the scenario that the demo shows with them."""
