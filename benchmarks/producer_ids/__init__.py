"""A user who opens a producer id for every batch, held in each way that there is, and measured."""
