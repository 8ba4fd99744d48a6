"""Normalizes PEM text in settings.

The Java client accepts PEM with lines of any length, or with blanks in place of line breaks,
because a value in a properties file is one line. OpenSSL does not. So every block is written again
with 64 characters a line. A block with headers (an old encrypted key) stays unchanged: its line
ends matter.

Example: ``-----BEGIN CERTIFICATE----- AAAA BBBB -----END CERTIFICATE-----`` becomes three lines,
the second one ``AAAABBBB``.
"""

import re
import textwrap

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)\s-----END \1-----", re.DOTALL)


def certificates(text: str) -> str:
    """Return normalized PEM text with a certificate.

    Raises:
        ValueError: the text has no certificate; the message quotes nothing.
    """
    return _blocks(text, "CERTIFICATE")


def private_key(text: str) -> str:
    """Return normalized PEM text with a private key.

    Raises:
        ValueError: the text has no private key; the message quotes nothing.
    """
    return _blocks(text, "PRIVATE KEY")


def _blocks(text: str, label: str) -> str:
    blocks = [(match[1], match[2]) for match in _BLOCK.finditer(text)]
    if not any(name.endswith(label) for name, _ in blocks):
        raise ValueError(f"must be PEM text that begins with -----BEGIN {label}-----, not a path")
    return "".join(
        f"-----BEGIN {name}-----\n{_lines(body)}\n-----END {name}-----\n" for name, body in blocks
    )


def _lines(body: str) -> str:
    if ":" in body:
        return body
    return "\n".join(textwrap.wrap("".join(body.split()), 64))
