"""Tests of other programs' readings as a history."""
