r"""Joins the pieces in which a file is read, and splits them into whole lines.

A line is returned when its end has been read. A line that is longer than allowed is dropped, and
its bytes are not kept until its end is read. A new splitter expects the start of a line.

Example: the longest line has 5 bytes. The pieces ``ab``, ``c\nd``, ``efghi``, ``j\nk\n`` give the
lines ``abc`` and ``k``. The line ``defghij`` is dropped: 1 line, 8 bytes with its end.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class LineSplitter:
    """Splits pieces into lines.

    Attributes:
        longest: the most bytes of a line, without its end, > 0.
        dropped_lines: the number of lines that were longer.
        dropped_bytes: the bytes of these lines, and of parts dropped by ``skip`` or ``restart``.
    """

    longest: int
    dropped_lines: int = field(default=0, init=False)
    dropped_bytes: int = field(default=0, init=False)
    _begun: bytearray = field(default_factory=bytearray, init=False)
    _skipping: bool = field(default=False, init=False)

    def split_piece(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece."""
        if self._skipping:
            end = piece.find(b"\n")
            self.dropped_bytes += len(piece) if end < 0 else end + 1
            if end < 0:
                return []
            self._skipping = False
            piece = piece[end + 1 :]
        end = piece.rfind(b"\n")
        if end < 0:
            self._begun += piece
            lines = []
        else:
            lines = (bytes(self._begun) + piece[:end]).split(b"\n")
            self._begun = bytearray(piece[end + 1 :])
            lines = self._without_long(lines)
        if len(self._begun) > self.longest:
            self.dropped_lines += 1
            self.skip()
        return lines

    def skip(self) -> None:
        """The next piece begins within a line: drops its rest, and the line that was begun."""
        self.dropped_bytes += len(self._begun)
        self._begun.clear()
        self._skipping = True

    def restart(self) -> None:
        """The next piece begins a line: drops the line that was begun, which has no end."""
        self.dropped_bytes += len(self._begun)
        self._begun.clear()
        self._skipping = False

    def rest(self) -> list[bytes]:
        """The line that was begun: the file ended without a line end."""
        lines = [bytes(self._begun)] if self._begun else []
        self._begun.clear()
        self._skipping = False
        return lines

    def _without_long(self, lines: list[bytes]) -> list[bytes]:
        # Most lines are far shorter, so this costs only the search for the longest.
        if max(map(len, lines)) <= self.longest:
            return lines
        whole = [line for line in lines if len(line) <= self.longest]
        self.dropped_lines += len(lines) - len(whole)
        self.dropped_bytes += sum(len(line) + 1 for line in lines if len(line) > self.longest)
        return whole
