"""Sizes in bytes, and times, as text for people."""


def size(count: float) -> str:
    """Bytes in decimal units, as disks are sold: 38.2 MB."""
    if abs(count) < 999.95:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if abs(count) < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def duration_in_words(seconds: float | None) -> str:
    """A time in its largest unit: 3 h; "" for None."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
