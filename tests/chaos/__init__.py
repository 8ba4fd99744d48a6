"""Real faults: real brokers and sidecars, killed, frozen and restarted by seed."""
