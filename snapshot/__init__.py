"""goldens: a golden-reference snapshot store for LLM inference.

The distribution and the command are called ``goldens``; this is its package.
Nothing here imports torch: only the rooms under ``snapshot.runners`` do.
"""

__version__ = "0.1.0"
