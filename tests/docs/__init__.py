"""What the pages in docs/ say, run through the code."""
