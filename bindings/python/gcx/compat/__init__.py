"""The interfaces of other packages, on gcx: for moving over without rewriting."""
