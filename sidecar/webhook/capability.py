"""The capability that sends messages to a webhook and to Kubernetes, and its metrics."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from pydantic import SecretStr

from sidecar.api.bearer_token import read_token
from sidecar.control.capability import Build, Capability, Services, Task
from sidecar.errors import SettingsError
from sidecar.peers.trust import Trust
from sidecar.settings import Settings
from sidecar.settings.convert import secret_url
from sidecar.throttle.decision import Decision
from sidecar.webhook.kubernetes import EventPoster
from sidecar.webhook.messages import Facts, State, message, pod_events
from sidecar.webhook.sender import Hook, Post, Sender

_RESULTS = ("sent", "failed", "dropped")


_EVENT_INTERVAL_S: Final = 30.0
"""An hour, for which the API server keeps events, has at most 120 changes."""


def prepare(settings: Settings) -> Build:
    """Return the function that builds the capability; raises SettingsError for a wrong secret."""
    hook, events = _webhook(settings), _events(settings)

    def build(services: Services) -> Capability:
        senders = [
            None if each is None else Sender(each, services.board, services.wall)
            for each in (hook, events)
        ]
        return WebhookCapability(*senders)

    return build


def _webhook(settings: Settings) -> Hook | None:
    secret, url = _secret(settings), _url(settings)

    def write(before: State, decision: Decision, facts: Facts) -> tuple[bytes, ...]:
        return (message(settings.webhook_format, before, decision, facts),)

    if url is None:
        return None
    renews = settings.webhook_format == "alertmanager"
    interval_s, runbooks = settings.webhook_interval, settings.runbooks_url
    return Hook(write, renews, interval_s, runbooks, secret, _post_to(url))


def _events(settings: Settings) -> Hook | None:
    pod = settings.kubernetes_pod
    if pod is None:
        return None
    poster = EventPoster.of(settings.kubernetes_url, pod.partition("/")[0])
    write = partial(pod_events, pod)
    return Hook(write, False, _EVENT_INTERVAL_S, "", None, poster.post, "Kubernetes events")


def _post_to(url: SecretStr) -> Post:
    # The receiver is not one of the sidecars, so the machine's CA certificates count.
    trust = Trust()

    async def post(body: bytes, headers: Mapping[str, str]) -> int:
        # A receiver that took the message may answer with a long page.
        response = await trust.request(
            "POST", url.get_secret_value(), headers=headers, body=body, needs_body=False
        )
        return response.status

    return post


def _url(settings: Settings) -> SecretStr | None:
    file = settings.webhook_url_file
    if file is None:
        return settings.webhook_url
    try:
        return secret_url(read_token(file, "webhook's URL"))
    except ValueError as error:
        raise SettingsError((f"the URL in the webhook's file {file} {error}",)) from None


def _secret(settings: Settings) -> str | None:
    file = settings.webhook_secret_file
    return None if file is None else read_token(file, "webhook's secret")


class WebhookCapability(Capability):
    """Sends messages if a URL is set, and events if a pod is."""

    name = "webhook"

    def __init__(self, sender: Sender | None, events: Sender | None) -> None:
        self._sender = sender
        self._events = events

    def tasks(self) -> Mapping[str, Task]:
        """Sends the messages and the events."""
        senders = {"messages": self._sender, "events": self._events}
        return {name: each.run for name, each in senders.items() if each is not None}

    def metrics(self) -> Iterator[Metric]:
        """The metrics of the messages and of the events."""
        for name, text, sender in (
            ("webhook_messages", "Messages to the webhook", self._sender),
            ("kubernetes_events", "Changes for events of the pod in Kubernetes", self._events),
        ):
            results = CounterMetricFamily(
                f"kafka_throttle_{name}",
                f"{text}: sent, attempts that failed, and states that were dropped, as another"
                " followed too soon or all attempts failed.",
                labels=["result"],
            )
            for result in _RESULTS:
                results.add_metric([result], 0 if sender is None else sender.results[result])
            yield results

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:  # noqa: ARG002
        """Read the secret and the file with the URL again."""
        secret, url, sender = _secret(settings), _url(settings), self._sender
        is_in_file = settings.webhook_url_file is not None

        def use() -> None:
            if sender is not None:
                sender.hook.secret = secret
                if url is not None and is_in_file:
                    sender.hook.post = _post_to(url)

        return use
