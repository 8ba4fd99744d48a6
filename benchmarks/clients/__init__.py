"""Producers of many client libraries in a throttle: ``make bench-clients``.

One program for each language appends numbered records. Their command lines are alike: words
``name=value``, which are ``client``, ``bootstrap``, ``topic`` (which is the client-id, too),
``partitions`` (written in turn), ``rate`` (bytes of values a second), ``size`` (bytes of a value),
and settings by the client's own names. So are their outputs, a JSON object a line with the time,
seconds since 1970::

    {"at": 1700000000.123, "sent": 17}
    {"at": 1700000000.125, "acknowledged": 17}
    {"at": 1700000031.002, "failed": 18, "error": "..."}

A value begins with its number and a space; the rest is random, since some compress by default. A
client that blocks when its buffer is full blocks the program: what was not sent in that time is not
made up for. At the end of its standard input a program sends nothing more, reports what is under
way, and ends after a minute.
"""
