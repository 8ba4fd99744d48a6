"""A program that does nothing: ``python -m tests.usage_pipeline.cli.nothing``."""
