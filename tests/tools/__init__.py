"""Tests of the programs that make committed files from code."""
