"""A volume that fills beside a cleaner: slowed between two limits, and throttled at one alone."""
