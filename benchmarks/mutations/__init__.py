"""Another user's admin operation during a storm of new topics: KIP-599's experiment, on KRaft."""
