r"""Joins the pieces in which a container's log has a long line.

Container runtimes cut what a container writes after 16 KiB. With CRI (containerd, CRI-O), all
pieces but the last have the tag ``P``, the last one ``F``. In Docker's json-file, only the last one
ends with ``\n``.

Example: ``... stdout P [2026-03-04`` and ``... stdout F  05:06:07,101] DEBUG`` are one line,
``... stdout F [2026-03-04 05:06:07,101] DEBUG``.

Source: kubernetes/pkg/kubelet/kuberuntime/logs; moby's jsonfilelog and copier.
"""

import re
from typing import Final

_CRI: Final = re.compile(
    rb"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP])(?::\w+)* "
)
_DOCKER: Final = b'{"log":"'
_STREAM: Final = b'","stream":"'


def is_of_container(line: bytes) -> bool:
    """Whether a container runtime wrote a line, so that the log may have pieces."""
    return line.startswith(_DOCKER) or _CRI.match(line) is not None


class Pieces:
    """The lines that were begun in one log."""

    def __init__(self, longest: int = 1 << 26) -> None:
        """No line was begun.

        Args:
            longest: the most bytes of a line that is joined.
        """
        self._longest = longest
        self._begun: dict[bytes, bytearray] = {}

    def join(self, line: bytes) -> bytes | None:
        """Joins a line to the pieces before it.

        Returns:
            The whole line; None if further pieces follow.
        """
        cri = None
        if line.startswith(_DOCKER):
            end = line.rfind(_STREAM)
            if end < 0:
                return line
            stream = line[end:].split(b'"')[4]
            is_last, begin = line.endswith(b"\\n", 0, end), len(_DOCKER)
            rest = line[end:]
        else:
            cri = _CRI.match(line)
            if cri is None:
                return line
            stream, is_last, begin, end, rest = cri[1], cri[2] == b"F", cri.end(), len(line), b""
        begun = self._begun.get(stream)
        if is_last and begun is None:
            return line
        if begun is None or len(begun) > self._longest:
            begun = self._begun[stream] = bytearray(line[:begin])
            if cri is not None:
                # The tag of a whole line: otherwise a later first piece would be taken for one.
                begun[cri.start(2) : cri.end(2)] = b"F"
        begun += line[begin:end]
        if not is_last:
            return None
        del self._begun[stream]
        return bytes(begun + rest)
