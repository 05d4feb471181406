"""What `meson install` gives, and programs that are built against it."""
