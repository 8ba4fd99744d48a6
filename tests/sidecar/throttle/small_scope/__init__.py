"""A search through all short lives of a small cluster, by the rules alone.

Two brokers have two volumes each. One event happens after another: a whole or a partial
observation, a failed poll a validity later, the end of all validities, or a forget. A search in
breadth visits every sequence of events up to a depth, and tries an override after each but the last
event. Two sequences are one state if no later decision can differ (``key``).

Beside the program's memory, each state has a ``Ghost``: what each broker last answered and when,
what was fenced since, and what an operator forgot. The claims compare each decision with the ghost
alone.

``python -m tests.sidecar.throttle.small_scope`` prints how much the search visits.
"""

from tests.sidecar.throttle.small_scope.breadth import search
from tests.sidecar.throttle.small_scope.scopes import SCOPES

__all__ = ["SCOPES", "search"]
