"""Recorded goldens on disk: strict to read, atomic to write, the format in docs/file-format.md."""

from snapshot.store.blobs import LazyArrays
from snapshot.store.store import Change, Store

__all__ = ["Change", "LazyArrays", "Store"]
