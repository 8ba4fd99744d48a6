"""A user who opens a producer id for every batch, throttled by each variant, and measured."""
