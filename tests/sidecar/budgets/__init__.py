"""Tests of storage budgets."""
