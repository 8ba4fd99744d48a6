r"""Whole lines out of the pieces that a file is read in.

A line is returned when its end is there. One that is longer than allowed is dropped as a whole, and
its bytes are not retained while its end is awaited. It begins with no piece, at the start of a
line.

Example: longest line 5: the pieces ``ab``, ``c\nd``, ``efghi``, ``j\nk\n`` are ``abc`` and ``k``;
``defghij`` is dropped: 1 line, 8 bytes with its end.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Cutter:
    """Pieces to lines.

    Attributes:
        longest: bytes of a line without its end, > 0.
        dropped_lines: that were longer.
        dropped_bytes: of those lines, and of what was skipped.
    """

    longest: int
    dropped_lines: int = field(default=0, init=False)
    dropped_bytes: int = field(default=0, init=False)
    _begun: bytearray = field(default_factory=bytearray, init=False)
    _skipping: bool = field(default=False, init=False)

    def cut(self, piece: bytes) -> list[bytes]:
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
        """What follows is in the middle of a line: drops up to its end, and what was begun."""
        self.dropped_bytes += len(self._begun)
        self._begun.clear()
        self._skipping = True

    def restart(self) -> None:
        """What follows is the start of a line, and what was begun has no end."""
        self.dropped_bytes += len(self._begun)
        self._begun.clear()
        self._skipping = False

    def rest(self) -> list[bytes]:
        """What was begun, as a line: the file ends without the end of its last one."""
        lines = [bytes(self._begun)] if self._begun else []
        self._begun.clear()
        self._skipping = False
        return lines

    def _without_long(self, lines: list[bytes]) -> list[bytes]:
        # Most lines are far shorter: finding the longest is all that it costs.
        if max(map(len, lines)) <= self.longest:
            return lines
        whole = [line for line in lines if len(line) <= self.longest]
        self.dropped_lines += len(lines) - len(whole)
        self.dropped_bytes += sum(len(line) + 1 for line in lines if len(line) > self.longest)
        return whole
