"""What every test needs."""

import asyncio
import signal

# looptime asks for the current event loop before each test, and for a sync test that comes first
# asyncio would make one that nobody closes. Once one was set, even to None, it makes none.
asyncio.set_event_loop(None)

# Who starts the tests in a shell's background hands an ignored SIGINT down to every process that
# the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
