"""Writes what the bindings repeat of gcx.h: `python -m bindings.generator`.

Each language has a module with a function `files`, which returns paths and texts. Fixed parts of
the files are in `templates`, with $NAME where the module's lines go; documentation that gcx.h lacks
is in `texts`.
"""
