"""Tests of ``sidecar.formats``."""
