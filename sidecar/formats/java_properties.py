r"""Reads Java properties files as Kafka does: bytes in ISO 8859-1, with trimmed values.

Each pair has the number of the line that it begins in.

Example: ``# x\na = b \`` and ``c`` in the next line are the pair ``a``, ``b c`` of line 2.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator


def parse_properties(content: bytes | str) -> Iterator[tuple[str, str, int]]:
    """Return key, value and line of each pair in order.

    Raises:
        ValueError: the text isn't a properties file; the message quotes nothing of it.
    """
    # Imported here, since few runs have a properties file.
    import javaproperties  # noqa: PLC0415

    line = 1
    if isinstance(content, bytes):
        # Java would take the mark for a part of the first key, which nobody means.
        content = content.removeprefix(BOM_UTF8)
    elements = javaproperties.parse(content)
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError:
            raise ValueError(f"line {line}: \\u without four hexadecimal digits") from None
        if element is None:
            return
        if isinstance(element, javaproperties.KeyValue):
            yield element.key, element.value.strip(" \t\f"), line
        line += len(re.findall(r"\r\n|\r|\n", element.source))
