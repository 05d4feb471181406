"""Tests of the command gcx, as its users run it: words in, text or JSON and an exit status out."""
