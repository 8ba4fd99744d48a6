"""The pages in docs/ are run through the code."""
