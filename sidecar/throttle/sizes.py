"""Bytes in words, for the sentences that people read."""


def size(count: float) -> str:
    """Bytes in decimal units, as disks are sold: 38.2 MB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 999.95 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable: TB ends the loop")
