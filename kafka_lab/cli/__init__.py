"""The commands ``demo`` and ``demo-pipeline``."""
