"""Connections to brokers: the pool, security, deadlines and failures."""
