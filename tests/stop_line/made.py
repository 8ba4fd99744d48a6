"""A bound made up for the tests of what is worked out of runs."""

from typing import Final

from tests.stop_line.course import Bound

MB: Final = 1_000_000
BOUND: Final = Bound(bytes_per_s=6e6, delays_s=1.5, request_threads=4, request_bytes=MB)
"""7.56 MB/s x 1.5 s + 4.2 MB."""
