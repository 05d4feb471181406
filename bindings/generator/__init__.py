"""Writes what the bindings repeat of gcx.h: `python -m bindings.generator`."""
