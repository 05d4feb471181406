"""Tests the result of `meson install`, and programs that are built against it."""
