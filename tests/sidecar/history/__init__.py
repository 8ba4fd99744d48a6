"""Tests of the volume history."""
