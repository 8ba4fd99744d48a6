"""The small HTTP client asks many at once, has one deadline, and leaks no token."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from sidecar.api.problems import NOTHING_HERE
from sidecar.cli.sidecar_client import Address, Request, parse_address, request_all
from tests.support.background import Canned, reply, serving

SHOW = Request("GET", "/v1/override")
TOKEN = "s3cr3t-t0k3n"


@pytest.fixture
def canned(canned: Canned) -> Canned:
    canned.answers["GET /v1/override"] = reply({"override": None})
    return canned


@contextmanager
def saying(*pieces: bytes, pause_s: float = 0.0) -> Iterator[Address]:
    """A server that says something to whoever comes, and then nothing more."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()
    accepted: list[socket.socket] = []

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            accepted.append(connection)
            for piece in pieces:
                # Who asked may be gone.
                with suppress(OSError):
                    connection.sendall(piece)
                over.wait(pause_s)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Address("http", *listener.getsockname())
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
        for connection in accepted:
            connection.close()


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("b1", "http://b1:7070"),
            ("b1:8080", "http://b1:8080"),
            ("10.0.0.1:8080", "http://10.0.0.1:8080"),
            ("[::1]:8080", "http://[::1]:8080"),
            ("http://b1", "http://b1:80"),
            ("https://b1", "https://b1:443"),
            ("https://b1:8443/sidecar/", "https://b1:8443/sidecar"),
        ],
    )
    def test_what_is_understood(self, text: str, expected: str) -> None:
        """Without a scheme it is http and the sidecar's own port."""
        assert expected == str(parse_address(text))

    @pytest.mark.parametrize(
        "text",
        ["", "b1:x", "b1:99999", "b1:0", "ftp://b1", "http://", "b1:1?x=1", "b1:1#x", "b 1", "ü:1"],
    )
    def test_what_is_refused(self, text: str) -> None:
        """A sentence says why, before anybody is asked."""
        with pytest.raises(ValueError, match=r"\w"):
            parse_address(text)

    @pytest.mark.parametrize("password", ["hunter2", "hunter/2", "1/hunter"])
    def test_a_password_in_a_url_is_refused_and_not_repeated(self, password: str) -> None:
        """It would be seen in the table, and in the shell's history."""
        with pytest.raises(ValueError, match="token-file") as refusal:
            parse_address(f"https://admin:{password}@b1:7070")
        assert "hunter" not in str(refusal.value)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("http://b1:7070", True),
            ("https://b1:7070", False),
            ("http://127.0.0.1:7070", False),
            ("http://localhost:7070", False),
            ("http://[::1]:7070", False),
        ],
    )
    def test_whether_others_could_read_along(self, text: str, expected: bool) -> None:
        """Without TLS and off the machine they could."""
        assert expected == parse_address(text).exposes


class TestAsking:
    def test_each_sidecar_s_answer_in_their_order(self, canned: Canned) -> None:
        """One answers, one refuses the connection, one answers again."""
        good, gone = parse_address(canned.address), Address("http", "127.0.0.1", 1)
        answers = request_all([good, gone, good], [SHOW])
        assert [good, gone, good] == [answer.address for answer in answers]
        refused = (
            "Connection refused: nothing listens there; a sidecar's API listens where its "
            "SIDECAR_HTTP_LISTEN says"
        )
        assert [None, refused, None] == [answer.problem for answer in answers]
        assert ({"override": None},) == answers[0].documents

    def test_several_questions_are_asked_one_after_the_other(self, canned: Canned) -> None:
        """It stops at one that is refused."""
        canned.answers["GET /a"] = reply({"a": 1})
        requests = [Request("GET", "/a"), Request("GET", "/no"), Request("GET", "/a")]
        (answer,) = request_all([parse_address(canned.address)], requests)
        assert ({"a": 1},) == answer.documents
        assert "it answered 404" == answer.problem
        assert ["/a", "/no"] == [asked.path for asked in canned.asked]

    def test_a_question_s_body_is_json(self, canned: Canned) -> None:
        """The API wants it so."""
        body = {"factor": 0.5, "reason": "größere Platten"}
        request_all([parse_address(canned.address)], [Request("PUT", "/v1/override", body)])
        assert body == json.loads(canned.asked[0].body)
        assert "application/json" == canned.asked[0].headers["Content-Type"]

    def test_a_path_before_v1_is_sent(self, canned: Canned) -> None:
        """A sidecar behind a proxy may have one."""
        canned.answers["GET /b1/v1/override"] = reply({})
        (answer,) = request_all([parse_address(f"{canned.url}/b1/")], [SHOW])
        assert answer.problem is None

    @pytest.mark.slow
    def test_all_are_asked_at_once(self, canned: Canned) -> None:
        """Ten that hang take one deadline, not ten, and the eleventh has its answer."""
        with saying() as hung:
            began = time.monotonic()
            addresses = [*[hung] * 10, parse_address(canned.address)]
            *silent, good = request_all(addresses, [SHOW], deadline_s=0.5)
            took_s = time.monotonic() - began
        assert took_s < 10 * 0.5
        assert {True} == {str(answer.problem).startswith("no answer") for answer in silent}
        assert good.problem is None

    @pytest.mark.slow
    def test_one_that_answers_a_byte_at_a_time_times_out_at_the_deadline(self) -> None:
        """Each byte comes in time, the answer never does."""
        with saying(b"HTTP/1.1 200 OK\r\nX: ", *[b"x"] * 40, pause_s=0.1) as slow:
            began = time.monotonic()
            (answer,) = request_all([slow], [SHOW], deadline_s=0.5)
            took_s = time.monotonic() - began
        assert "no answer within 0.5 s" == answer.problem
        assert took_s < 40 * 0.1

    @pytest.mark.parametrize(
        "said",
        [
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\xff",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + b"[" * 9000,
            b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>",
        ],
    )
    def test_one_that_is_no_sidecar_is_reported_as_such(self, said: bytes) -> None:
        """The port has another program, or a proxy's own page."""
        with saying(said) as other:
            (answer,) = request_all([other], [SHOW])
        assert "the server at this address is not a sidecar" == answer.problem

    def test_an_answer_that_is_cut_is_refused(self, canned: Canned) -> None:
        """The part that came is a document, and is refused all the same."""
        canned.answers["GET /v1/override"] = (200, {"Content-Length": "99"}, b'{"override": null}')
        (answer,) = request_all([parse_address(canned.address)], [SHOW])
        assert (False, True) == (answer.reached, answer.problem is not None)

    def test_an_answer_longer_than_a_mebibyte_is_not_read(self, canned: Canned) -> None:
        """What a sidecar says fits into some hundred bytes."""
        canned.answers["GET /v1/override"] = reply({"override": "x" * (1 << 20)})
        (answer,) = request_all([parse_address(canned.address)], [SHOW])
        assert "its answer is longer than 1 MiB" == answer.problem

    def test_a_redirect_is_not_followed(self, canned: Canned) -> None:
        """The token would go to whoever it names."""
        with serving(Canned()) as thief:
            location = {"Location": f"{thief.url}/v1/override"}
            canned.answers["GET /v1/override"] = (307, location, b"")
            (answer,) = request_all([parse_address(canned.address)], [SHOW], TOKEN)
            assert [] == thief.asked
        assert "it answered 307 Temporary Redirect, which is not followed" == answer.problem

    def test_a_problem_document_is_reported_by_its_detail_and_fields(self, canned: Canned) -> None:
        """The API answers so by RFC 9457."""
        problem = {
            "detail": "The input is not as it must be.",
            "errors": [{"field": "duration", "problem": "too long"}],
        }
        canned.answers["PUT /v1/override"] = reply(problem, 422)
        request = Request("PUT", "/v1/override", {})
        (answer,) = request_all([parse_address(canned.address)], [request])
        assert "The input is not as it must be. duration: too long" == answer.problem

    def test_the_port_of_the_metrics_is_reported_as_such(self, canned: Canned) -> None:
        """That port does not know the path; a known path is refused in the sidecar's words."""
        for detail, expected in (
            (
                NOTHING_HERE,
                "the API is not there, but where the sidecar's SIDECAR_HTTP_LISTEN says:",
            ),
            ("Nothing of this broker.", "Nothing of this broker."),
        ):
            canned.answers["DELETE /v1/override"] = reply({"detail": detail}, 404)
            request = Request("DELETE", "/v1/override")
            (answer,) = request_all([parse_address(canned.address)], [request])
            assert answer.problem is not None
            assert answer.problem.startswith(expected)
            assert "/docs" not in answer.problem


class TestTheToken:
    def test_it_is_sent_as_a_bearer_token(self, canned: Canned) -> None:
        """Every question has it."""
        request_all([parse_address(canned.address)], [SHOW, SHOW], TOKEN)
        expected = [f"Bearer {TOKEN}"] * 2
        assert expected == [asked.headers["Authorization"] for asked in canned.asked]

    def test_it_is_in_no_answer(self, canned: Canned) -> None:
        """Its repr has none either, whatever went wrong."""
        addresses = [parse_address(canned.address), Address("http", "127.0.0.1", 1)]
        with saying(b"garbage\r\n") as other:
            answers = request_all([*addresses, other], [SHOW], TOKEN, deadline_s=1)
        assert TOKEN not in repr(answers)
