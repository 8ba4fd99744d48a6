"""What a plot has drawn."""

import re


def paths(drawn: str, kind: str) -> list[list[tuple[float, float]]]:
    """Returns the points of every path of a class, in the plot's units."""
    found = re.findall(rf'<path class="{kind}[^"]*" d="([^"]*)"', drawn)
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)] for path in found
    ]
