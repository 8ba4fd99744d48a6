"""A real local Kafka cluster, the traffic on it, and the scenario that is shown with them."""
