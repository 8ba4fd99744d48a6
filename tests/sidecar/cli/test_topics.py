"""``topics``: which topics are meant, what is asked for, and how each outcome is reported."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from sidecar.cli import group
from sidecar.kafka.topic_messages import (
    CREATE_PARTITIONS_KEY,
    CREATE_TOPICS_KEY,
    DELETE_TOPICS_KEY,
)
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.support.background import bootstrap, running
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest


@dataclass
class FakeController:
    """Two brokers, of whom the first takes all topics, or refuses some.

    Attributes:
        codes: by topic, in turn; none any more: it is done.
        wait_ms: what a throttled answer states.
        requests: all that was asked, decoded.
    """

    codes: dict[str, list[ErrorCode]] = field(default_factory=dict)
    wait_ms: int = 20
    requests: list[Any] = field(default_factory=list)
    cluster: FakeCluster = field(default_factory=lambda: FakeCluster().add(2))

    def __post_init__(self) -> None:
        created: dict[str, object] = {
            "topic_id": None,
            "topic_config_error_code": ErrorCode.none,
            "num_partitions": 1,
            "replication_factor": 1,
            "configs": [],
        }
        self._serve(CREATE_TOPICS_KEY, 7, "topics", **created)
        self._serve(CREATE_PARTITIONS_KEY, 3, "results")
        self._serve(DELETE_TOPICS_KEY, 6, "responses", topic_id=None)

    def _serve(self, key: int, version: int, results: str, **more: Any) -> None:
        """Answers a kind of request with a result for each topic, in this field of the answer."""
        read = entity_reader(load_request_schema(key, version))

        def answer(_: FakeBroker, request: FakeRequest) -> bytes:
            asked: Any = read(request.body, 0)[0]
            self.requests.append(asked)
            codes = {topic.name: self._code(topic.name) for topic in asked.topics}
            wait_ms = self.wait_ms if THROTTLED in codes.values() else 0
            topics = [
                {"name": topic, "error_code": code, "error_message": None, **more}
                for topic, code in codes.items()
            ]
            wait = timedelta(milliseconds=wait_ms)
            return kio_answer(key, version, **{results: topics}, throttle_time=wait)

        self.cluster.answer(key, version, answer)

    def _code(self, topic: str) -> ErrorCode:
        codes = self.codes.get(topic)
        return codes.pop(0) if codes else ErrorCode.none


THROTTLED = ErrorCode.throttling_quota_exceeded


@pytest.fixture
def controller() -> Iterator[FakeController]:
    controller = FakeController()
    with running(controller.cluster):
        yield controller


def run(controller: FakeController, *args: str, stdin: str | None = None) -> Result:
    words = ["topics", *args, "--bootstrap-server", bootstrap(controller.cluster)]
    return CliRunner().invoke(group, words, input=stdin)


class TestNames:
    def test_a_file_may_say_how_many_partitions(
        self, controller: FakeController, tmp_path: Path
    ) -> None:
        """Some of its topics have a number; the option sets the others', comments are skipped."""
        names = tmp_path / "names"
        names.write_text("# ours\norders\n\n  bills 12 \n")
        result = run(controller, "create", "first", "--from", str(names), "--partitions", "4")
        assert (0, "3 of 3 topics created\n") == (result.exit_code, result.output)
        (request,) = controller.requests
        expected = [("first", 4), ("orders", 4), ("bills", 12)]
        assert expected == [(topic.name, topic.num_partitions) for topic in request.topics]

    def test_a_file_may_begin_with_a_byte_order_mark(self, controller: FakeController) -> None:
        """Editors of Windows write one, and it is no part of the first name."""
        assert 0 == run(controller, "create", "--from", "-", stdin="\ufefforders\n").exit_code
        assert ["orders"] == [topic.name for topic in controller.requests[0].topics]

    def test_standard_input_is_a_file_too(self, controller: FakeController) -> None:
        """Another program may write thousands of names, of which 50 are in a request."""
        names = "".join(f"t{number}\n" for number in range(2000))
        result = run(controller, "create", "--from", "-", stdin=names)
        assert (0, "2,000 of 2,000 topics created\n") == (result.exit_code, result.output)
        assert [50] * 40 == [len(request.topics) for request in controller.requests]

    @pytest.mark.parametrize(
        ("args", "stdin", "words"),
        [
            (["create"], None, "name a topic"),
            (["create", "a", "b", "a"], None, "the topic a is named twice"),
            (["create", "a", "--from", "-"], "a\n", "the topic a is named twice"),
            (["create", "--from", "-"], "a 1 2\n", "line 1 is not a topic"),
            (["create", "--from", "-"], "b\na 0\n", "line 2 is not a topic"),
            (["create", "--from", "-"], "a x\n", "line 1 is not a topic"),
            (["create", "--from", "-"], f"a {2**31}\n", "line 1 is not a topic"),
            (["create", "--from", "-"], f"a {'9' * 5000}\n", "line 1 is not a topic"),
            (["create", "a", "--partitions", str(2**31)], None, "--partitions"),
            (["grow", "a", "--partitions", str(2**31)], None, "--partitions"),
            (["create", "--from", "/nowhere"], None, "No such file"),
            (["create", "a", "--topic-config", "x"], None, "must be KEY=VALUE"),
            (["create", "a", "--timeout", "10"], None, "--timeout"),
            (["create", "a", "--timeout", "PT0S"], None, "longer than 0 s"),
            (["grow", "a"], None, "how many is a to have?"),
        ],
    )
    def test_a_mistake_is_exit_code_2(
        self, controller: FakeController, args: list[str], stdin: str | None, words: str
    ) -> None:
        """It is reported before anybody is asked."""
        result = run(controller, *args, stdin=stdin)
        assert 2 == result.exit_code
        assert words in " ".join(result.output.split())
        assert [] == controller.requests


class TestAsking:
    def test_create_sends_all_options(self, controller: FakeController) -> None:
        """Whatever was not set is left to the brokers."""
        run(controller, "create", "a")
        args = "--replication-factor 3 --topic-config k=v=w --topic-config l= --validate-only"
        result = run(controller, "create", "a", *args.split())
        plain, full = (request.topics[0] for request in controller.requests)
        assert (-1, -1, ()) == (plain.num_partitions, plain.replication_factor, plain.configs)
        assert 3 == full.replication_factor
        assert [("k", "v=w"), ("l", "")] == [(each.name, each.value) for each in full.configs]
        assert [False, True] == [request.validate_only for request in controller.requests]
        assert "1 of 1 topics could be created\n" == result.output

    def test_grow(self, controller: FakeController) -> None:
        """The number is the new total."""
        result = run(controller, "grow", "a", "--from", "-", "--partitions", "8", stdin="b 9")
        assert (0, "2 of 2 topics grown\n") == (result.exit_code, result.output)
        (request,) = controller.requests
        assert [("a", 8), ("b", 9)] == [(topic.name, topic.count) for topic in request.topics]

    def test_delete_asks_first(self, controller: FakeController) -> None:
        """No answer means no; yes and --yes go on."""
        for stdin in ("n\n", "\n", ""):
            assert 130 == run(controller, "delete", "a", stdin=stdin).exit_code
        assert [] == controller.requests
        asked = run(controller, "delete", "a", "b", stdin="y\n")
        assert "Delete 2 topics with all that is in them?" in asked.output
        asked = run(controller, "delete", "a", stdin="n\n")
        assert "Delete the topic a with all that is in it?" in asked.output
        assert 0 == run(controller, "delete", "a", "b", "--yes").exit_code
        assert 2 == len(controller.requests)


class TestThrottling:
    def test_without_retry_it_is_reported(self, controller: FakeController) -> None:
        """As with Kafka's command, the code is 1; it says which topics, and how long to wait."""
        controller.codes = {"b": [THROTTLED]}
        controller.wait_ms = 2400
        result = run(controller, "create", "a", "b")
        assert 1 == result.exit_code
        assert "error 89 (THROTTLING_QUOTA_EXCEEDED)" in " ".join(result.output.split())
        sentence = result.output.splitlines()[-1]
        assert "1 of 2 topics created; 1 throttled, to be sent again in 2.4 s" == sentence
        assert 1 == len(controller.requests)

    @pytest.mark.parametrize("what", ["create", "grow", "delete"])
    def test_with_retry_it_is_asked_again(self, controller: FakeController, what: str) -> None:
        """It is asked after the wait, for what was throttled only."""
        controller.codes = {"b": [THROTTLED, THROTTLED]}
        more = {"grow": ["--partitions", "2"], "delete": ["--yes"]}.get(what, [])
        result = run(controller, what, "a", "b", "--retry", *more)
        assert 0 == result.exit_code, result.output
        asked = [[topic.name for topic in request.topics] for request in controller.requests]
        assert [["a", "b"], ["b"], ["b"]] == asked

    def test_a_time_out_of_weeks(self, controller: FakeController) -> None:
        """It is longer than a request of Kafka's protocol can say."""
        assert 0 == run(controller, "create", "a", "--timeout", "30d").exit_code

    def test_until_the_time_out(self, controller: FakeController) -> None:
        """A wait that ends after it is not begun."""
        controller.codes = {"b": [THROTTLED]}
        controller.wait_ms = 60_000
        result = run(controller, "create", "a", "b", "--retry", "--timeout", "PT5S")
        assert 1 == result.exit_code
        assert "1 throttled, to be sent again in 60.0 s" in result.output


class TestTelling:
    def test_a_table_of_what_was_not_done(self, controller: FakeController) -> None:
        """It has 20 rows at most; the sentence counts them all."""
        names = [f"t{number:02}" for number in range(30)]
        controller.codes = {name: [ErrorCode.topic_already_exists] for name in names[5:]}
        result = run(controller, "create", *names)
        assert 1 == result.exit_code
        rows = [line for line in result.output.splitlines() if line.startswith("t")]
        assert names[5:25] == [row.split()[0] for row in rows]
        assert "... and 5 more; --json prints them all" in result.output
        assert "5 of 30 topics created; 25 failed" == result.output.splitlines()[-1]

    def test_a_refusal_says_which_rights_are_needed(self, controller: FakeController) -> None:
        """Kafka says no more than that it failed."""
        controller.codes = {"a": [ErrorCode.topic_authorization_failed]}
        (result,) = json.loads(run(controller, "create", "a", "--json").output)
        assert "failed" == result["outcome"]
        assert "error 29 (TOPIC_AUTHORIZATION_FAILED)" in result["message"]
        assert "creating needs Create on the topic or the cluster" in result["message"]
        assert "kafka-acls.sh" in result["message"]
        assert "with AWS IAM, allow kafka-cluster:CreateTopic, " in result["message"]

    def test_json_has_every_topic(self, controller: FakeController) -> None:
        """Topics are in the order in which they were named."""
        controller.codes = {"b": [THROTTLED]}
        document = json.loads(run(controller, "create", "a", "b", "--json").output)
        assert {
            "topic": "a",
            "outcome": "done",
            "message": "",
            "throttle_time_ms": 0,
        } == document[0]
        assert ("b", "throttled", 20) == (
            document[1]["topic"],
            document[1]["outcome"],
            document[1]["throttle_time_ms"],
        )

    @pytest.mark.parametrize("as_json", [False, True])
    def test_ctrl_c_reports_what_was_done_by_then(
        self, controller: FakeController, *, as_json: bool
    ) -> None:
        """The second request has no answer when it comes; JSON has its topics too."""

        def stall(_: object, request: FakeRequest, frame: bytes) -> bytes | None:
            if len(controller.requests) < 2:
                return frame
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            return None

        for broker in controller.cluster.brokers.values():
            broker.twist = stall
        names = [f"t{number}" for number in range(60)]
        result = run(controller, "create", *names, *(["--json"] if as_json else []))
        assert 130 == result.exit_code
        if as_json:
            document = json.loads(result.stdout)
            assert names == [each["topic"] for each in document]
            outcomes = [each["outcome"] for each in document]
            assert ["done"] * 50 + ["interrupted"] * 10 == outcomes
            return
        assert "50 of 60 topics created; 10 interrupted" == result.output.splitlines()[-1]

    def test_what_can_t_be_used_is_reported_alone(
        self, controller: FakeController, tmp_path: Path
    ) -> None:
        """Nothing was sent, so no topic is called interrupted."""
        tls = tmp_path / "tls.properties"
        tls.write_text(f"security.protocol=SSL\nssl.truststore.location={tmp_path}/none.pem\n")
        result = run(controller, "create", "a", "--json", "--command-config", str(tls))
        assert 2 == result.exit_code
        assert "" == result.stdout
        assert "none.pem" in result.stderr

    def test_nobody_to_ask_is_exit_code_2(self) -> None:
        """Nothing is called throttled or failed."""
        words = ["topics", "create", "a", "--bootstrap-server", "127.0.0.1:1"]
        result = CliRunner().invoke(group, words)
        assert 2 == result.exit_code
        assert "0 of 1 topics created; 1 not sent" == result.output.splitlines()[-1]
        assert "127.0.0.1:1" in result.output
