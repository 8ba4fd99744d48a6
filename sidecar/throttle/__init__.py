"""The throttle factor: limits, memory of volumes, decision. Pure: data and time in, values out."""
