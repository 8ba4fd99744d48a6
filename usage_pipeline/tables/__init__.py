"""The tables: their columns, and atomic writes."""
