"""A sidecar that reads no brokers takes the throttles of owners from an observer, over HTTP."""

from sidecar.budgets.followers import follow_by_http
from sidecar.peers.addresses import Address
from sidecar.peers.trust import Trust
from sidecar.throttle.memory import BudgetThrottle
from tests.support.background import Canned, reply, serving


async def test_the_next_observer_is_asked_if_one_fails() -> None:
    """One refuses, one sends another form, one does not listen; and none is left at the end."""
    path = "GET /v1/quota-factors"
    document = {"factor": 1.0, "budgets": [{"owner": "a", "factor": 0.5, "topics": ["t"]}]}
    with (
        serving(Canned({path: reply({}, 503)})) as refuses,
        serving(Canned({path: reply({"budgets": 3})})) as other,
        serving(Canned({path: reply(document)})) as answers,
    ):
        urls = [refuses.url, other.url, answers.url]
        follow = follow_by_http(Trust(), lambda: map(Address, urls))
        assert {"a": BudgetThrottle(0.5, ("t",), 7.0)} == await follow(7.0)
        dead = urls.pop()
    urls[:] = [dead]
    assert await follow(8.0) is None
