"""What every test needs."""

import asyncio

# looptime asks for the current event loop before each test, and for a sync test that comes first
# asyncio would make one that nobody closes. Once one was set, even to None, it makes none.
asyncio.set_event_loop(None)
