"""Tests of sidecar/kafka/client."""
