"""Appends numbered records with one of three Python clients: librdkafka, kafka-python, aiokafka.

Its command line and its output are those of every program here (``__init__.py``). It runs in the
benchmark's own environment, which alone has kafka-python.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

OURS: Final = ("client", "bootstrap", "topic", "partitions", "rate", "size")
_STOP: Final = threading.Event()


def main() -> None:
    """Sends until its standard input ends."""
    words = dict(word.split("=", 1) for word in sys.argv[1:])
    ours = {name: words.pop(name) for name in OURS}
    threading.Thread(target=_stop_with_input, daemon=True).start()
    match ours["client"]:
        case "librdkafka":
            librdkafka(ours, words)
        case "kafka-python":
            kafka_python(ours, {name: _value(text) for name, text in words.items()})
        case "aiokafka":
            asyncio.run(aiokafka(ours, {name: _value(text) for name, text in words.items()}))
        case unknown:
            sys.exit(f"no such client: {unknown}")


def librdkafka(ours: dict[str, str], own: dict[str, str]) -> None:
    """A full queue raises BufferError: the record waits, as in a client that blocks."""
    from confluent_kafka import KafkaError, Message, Producer  # noqa: PLC0415 - one client alone

    def delivered(error: KafkaError | None, message: Message) -> None:
        value = message.value() or b""
        _outcome(int(value.split(b" ", 1)[0]), None if error is None else error.str())

    names = {"bootstrap.servers": ours["bootstrap"], "client.id": ours["topic"]}
    producer = Producer({**names, "on_delivery": delivered, **own})
    for number, partition, value, due in _records(ours):
        while (early := due - time.monotonic()) > 0:
            producer.poll(early)
        while not _STOP.is_set():
            try:
                producer.produce(ours["topic"], value, partition=partition)
                _report("sent", number)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    while True:
        producer.poll(0.1)


def kafka_python(ours: dict[str, str], own: dict[str, Any]) -> None:
    """Its own thread sends."""
    from kafka import KafkaProducer  # noqa: PLC0415 - one client alone

    names = {"bootstrap_servers": ours["bootstrap"], "client_id": ours["topic"]}
    producer = KafkaProducer(**names, **own)
    for number, partition, value, due in _records(ours):
        time.sleep(max(0.0, due - time.monotonic()))
        _report("sent", number)
        try:
            future = producer.send(ours["topic"], value, partition=partition)
        except Exception as error:  # noqa: BLE001 - what an application would see
            _outcome(number, repr(error))
            continue
        future.add_callback(lambda _, number=number: _outcome(number, None))
        future.add_errback(lambda error, number=number: _outcome(number, repr(error)))
    threading.Event().wait()


async def aiokafka(ours: dict[str, str], own: dict[str, Any]) -> None:
    """``send`` waits while the batch before is under way."""
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415 - one client alone

    names = {"bootstrap_servers": ours["bootstrap"], "client_id": ours["topic"]}
    producer = AIOKafkaProducer(**names, **own)
    await producer.start()

    def done(number: int, future: "asyncio.Future[Any]") -> None:
        error = future.exception()
        _outcome(number, None if error is None else repr(error))

    for number, partition, value, due in _records(ours):
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        _report("sent", number)
        try:
            future = await producer.send(ours["topic"], value, partition=partition)
        except Exception as error:  # noqa: BLE001 - what an application would see
            _outcome(number, repr(error))
            continue
        future.add_done_callback(lambda future, number=number: done(number, future))
    await asyncio.Event().wait()


def _records(ours: dict[str, str]) -> Iterator[tuple[int, int, bytes, float]]:
    """Number, partition, value, and when it is due; what was blocked is not made up for."""
    size, partitions = int(ours["size"]), int(ours["partitions"])
    each = size / float(ours["rate"])
    due, number = time.monotonic(), 0
    while not _STOP.is_set():
        head = b"%d " % number
        yield number, number % partitions, head + os.urandom(size - len(head)), due
        number += 1
        due += each
        if time.monotonic() - due > 0.1:
            due = time.monotonic()


def _stop_with_input() -> None:
    while os.read(0, 1):
        pass  # Nothing is said to it.
    _STOP.set()
    time.sleep(60.0)  # What is under way is reported.
    os._exit(0)


def _outcome(number: int, failure: str | None) -> None:
    if failure is None:
        _report("acknowledged", number)
    else:
        _report("failed", number, failure)


def _report(what: str, number: int, failure: str | None = None) -> None:
    line: dict[str, object] = {"at": round(time.time(), 3), what: number}
    if failure is not None:
        line["error"] = failure
    # One write for a line, from whatever thread.
    os.write(1, json.dumps(line).encode() + b"\n")


def _value(text: str) -> object:
    """A number or a boolean, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
