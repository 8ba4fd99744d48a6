"""What the README claims, measured: ``make bench``."""
