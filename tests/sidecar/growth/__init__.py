"""Tests of who fills volumes."""
