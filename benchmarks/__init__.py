"""The figures of benchmarks/results, measured: ``make bench`` and its like."""
