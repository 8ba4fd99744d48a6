"""The arithmetic of ``sidecar.quotas`` over arrays, compiled: millions of charges a second.

Each kernel gives the same results as a class there, bit by bit for each event; tests compare the
two. A kernel takes the charges of all clients that share a quota, in the order of time. A limit of
NaN means no limit.

Example: with 11 samples of 1 s, 1,000 bytes at 0 ms give a rate of 100 over 10,000 ms, both in
``rate.rates`` and in ``quotas.rate.Rate``.
"""
