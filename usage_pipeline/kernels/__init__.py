"""The arithmetic of ``sidecar.quotas`` over arrays, compiled: millions of charges a second.

Each kernel equals a class there, event by event and bit by bit; the tests hold it to that. They
take the charges of those who share a quota, in their order. A limit that holds nobody is NaN.

Example: ``rate.rates`` of 1,000 bytes at 0 ms over 11 samples of 1 s is a rate of 100 over
10,000 ms, as ``quotas.rate.Rate`` has it.
"""
