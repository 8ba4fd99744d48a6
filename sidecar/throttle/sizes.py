"""Sizes in bytes as text for people."""


def size(count: float) -> str:
    """Bytes in decimal units, as disks are sold: 38.2 MB."""
    if abs(count) < 999.95:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if abs(count) < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"
