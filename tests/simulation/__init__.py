"""A whole cluster in virtual time: real sidecars, simulated brokers, clients and faults by seed."""
