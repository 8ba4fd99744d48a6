"""A user who opens a producer id for every batch, throttled in each way, beside a neighbour."""
