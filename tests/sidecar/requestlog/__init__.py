"""Tests of reading the request log."""
