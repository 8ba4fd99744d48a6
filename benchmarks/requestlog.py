"""What following a broker's request log costs: a core's speed, the loop's stand-still, memory.

10,000,000 lines (10 GB) go through a file that is rotated at 64 MiB, as a broker's would be: they
are appended 16 MiB at a time, then the tail takes them in reads of 256 KiB, as the daemon does, and
each line is parsed and counted. The writing is not measured. Nine of ten lines are of 500 clients,
the others of 20,000, twice as many as are remembered: so the least recently seen make room all
the time. The APIs are in about the proportions of a busy broker.

Times are the processor's, so that who else wants the core doesn't count. The loop stands still
while a read's lines are parsed and counted; the reading is a thread's.
"""

import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.harness.machine import quiet_cores
from benchmarks.rows import Row, percentile
from sidecar.daemon.daemon import collect_garbage_rarely
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.client_usage import Usage
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.tail import Tail
from sidecar.requestlog.tail_read import TailSettings

_LINES: Final = 10_000_000
_OFTEN: Final = 500
_RARELY: Final = 20_000
_BLOCK: Final = 1 << 24
_FILE: Final = 1 << 26
_MIB: Final = 1 << 20

_TIMES: Final = (
    '"connection":"10.0.1.1:9093-10.1.3.7:41234-2-117","totalTimeMs":3.597,'
    '"requestQueueTimeMs":0.038,"localTimeMs":0.258,"remoteTimeMs":3.094,"throttleTimeMs":{wait},'
    '"responseQueueTimeMs":0.063,"sendTimeMs":0.144,"securityProtocol":"SASL_SSL",'
    '"principal":"User:{user}","listener":"CLIENT","clientInformation":'
    '{{"softwareName":"apache-kafka-java","softwareVersion":"4.3.1"}}}} (kafka.request.logger)\n'
)
_HEAD: Final = (
    '[2026-11-20 10:00:00,123] DEBUG Completed request:{{"isForwarded":false,"requestHeader":'
    '{{"requestApiKey":{key},"requestApiVersion":11,"correlationId":10342,'
    '"clientId":"{client}","requestApiKeyName":"{name}"}},'
)
_PRODUCE: Final = (
    '"request":{{"transactionalId":null,"acks":-1,"timeoutMs":30000,"topicData":[{{"name":"orders",'
    '"partitionData":[{{"index":3,"recordsSizeInBytes":16412}}]}}]}},"response":{{"responses":'
    '[{{"name":"orders","partitionResponses":[{{"index":3,"errorCode":0,"baseOffset":90115204,'
    '"logAppendTimeMs":-1,"logStartOffset":0,"recordErrors":[],"errorMessage":null}}]}}],'
    '"throttleTimeMs":{wait}}},'
)
_FETCH: Final = (
    '"request":{{"maxWaitMs":500,"minBytes":1,"maxBytes":52428800,"isolationLevel":0,"sessionId":'
    '1849127733,"sessionEpoch":917,"topics":[{{"topicId":"R0Qw3nShT-eMCtK--X86sw","partitions":'
    '[{{"partition":3,"currentLeaderEpoch":5,"fetchOffset":90115204,"lastFetchedEpoch":-1,'
    '"logStartOffset":-1,"partitionMaxBytes":1048576}}]}}],"forgottenTopicsData":[],"rackId":""}},'
    '"response":{{"throttleTimeMs":{wait},"errorCode":0,"sessionId":1849127733,"responses":'
    '[{{"topicId":"R0Qw3nShT-eMCtK--X86sw","partitions":[{{"partitionIndex":3,"errorCode":0,'
    '"highWatermark":90115260,"lastStableOffset":90115260,"logStartOffset":0,"abortedTransactions":'
    'null,"preferredReadReplica":-1,"recordsSizeInBytes":59882}}]}}]}},'
)
_PRODUCER_ID: Final = (
    '"request":{{"transactionalId":null,"transactionTimeoutMs":2147483647,"producerId":-1,'
    '"producerEpoch":-1}},"response":{{"throttleTimeMs":{wait},"errorCode":0,"producerId":{number},'
    '"producerEpoch":0}},'
)
_KINDS: Final = (
    *[(0, "PRODUCE", _PRODUCE)] * 11,
    *[(1, "FETCH", _FETCH)] * 8,
    (22, "INIT_PRODUCER_ID", _PRODUCER_ID),
)


def run() -> list[Row]:
    """Measures on the idlest core."""
    os.sched_setaffinity(0, {quiet_cores(1)[0]})
    collect_garbage_rarely()
    blocks = list(_blocks())
    with TemporaryDirectory() as folder:
        reading = _follow(Path(folder), blocks, lambda _: None, _LINES // 10)
        usage = Usage()
        allocated: Counter[str] = Counter()

        def count(lines: tuple[bytes, ...]) -> None:
            for text in lines:
                parsed = parse(text)
                usage.record(parsed)
                if isinstance(parsed, Line) and producer_id(parsed) is not None:
                    allocated[parsed.user] += 1

        gc.collect()
        before = _resident_bytes()
        counting = _follow(Path(folder), blocks, count, _LINES)
        after = _resident_bytes()
    assert sum(usage.rejected.values()) == 0
    assert usage.evicted.requests + sum(one.requests for one in usage.clients().values()) == _LINES
    assert sum(allocated.values()) == _LINES // len(_KINDS)
    return [
        Row("reading a request log, lines as they are", reading.mib_s, "MiB/s of a core"),
        Row("reading, parsing and counting it", counting.mib_s, "MiB/s of a core"),
        Row("the same, in lines", counting.lines_s, "lines/s"),
        Row("p99 of the loop's stand-still for one look", percentile(counting.stood, 0.99), "ms"),
        Row(f"memory that {_LINES:,} lines take", max(0, after - before) / _MIB, "MiB"),
    ]


class _Measured:
    """How long a tail and what is done with its lines took."""

    def __init__(self) -> None:
        self.lines = 0
        self.size = 0
        self.took_s = 0.0
        self.stood: list[float] = []

    @property
    def mib_s(self) -> float:
        return self.size / _MIB / self.took_s

    @property
    def lines_s(self) -> float:
        return self.lines / self.took_s


def _follow(
    folder: Path, blocks: list[bytes], use: Callable[[tuple[bytes, ...]], None], lines: int
) -> _Measured:
    """Appends blocks and follows them until so many lines were used."""
    path = folder / "kafka-request.log"
    path.unlink(missing_ok=True)
    tail = Tail(path, TailSettings(), from_start=True)
    measured = _Measured()
    for block in cycle(blocks):
        _append(path, block)
        more = True
        while more and measured.lines < lines:
            began = time.thread_time()
            tail_read = tail.read()
            lines_read = tail_read.lines[: lines - measured.lines]
            read = time.thread_time()
            use(lines_read)
            ended = time.thread_time()
            measured.took_s += ended - began
            measured.stood.append(1000 * (ended - read))
            measured.lines += len(lines_read)
            more = tail_read.more
        if measured.lines == lines:
            break
    counts = tail.counts
    assert (counts.dropped_lines, counts.dropped_bytes, counts.dropped_files) == (0, 0, 0)
    measured.size = counts.bytes
    tail.close()
    return measured


def _append(path: Path, block: bytes) -> None:
    if path.exists() and path.stat().st_size >= _FILE:
        path.rename(path.with_suffix(".1"))
    with path.open("ab") as file:
        file.write(block)


def _blocks() -> Iterator[bytes]:
    """All clients' lines, in pieces of about the size that is appended at once."""
    lines = iter(request_lines())
    while block := b"".join(islice(lines, _BLOCK // 1000)):
        yield block


def request_lines() -> Iterator[bytes]:
    """200,000 lines: 20,500 client-ids, 50 users, 10,000 producer ids."""
    kinds = cycle(_KINDS)
    for number in range(10 * _RARELY):
        client = _OFTEN + number // 10 if number % 10 == 0 else number % _OFTEN
        key, name, said = next(kinds)
        text = _HEAD + said + _TIMES
        yield text.format(
            key=key,
            name=name,
            client=f"orders-writer-{client}",
            user=f"tenant-{number % 50}",
            number=number,
            wait=198 if number % 20 == 7 else 0,
        ).encode()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
