"""Tests of the pipeline's commands."""
