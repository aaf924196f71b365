"""Single keys from the terminal.

The terminal stays in one mode for a whole conversation: what is typed ahead is neither shown
nor lost, which changing the mode for every key does to it.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

try:
    import termios
    import tty
except ImportError:  # Windows; click knows how there
    _POSIX = False
else:
    _POSIX = True


@contextmanager
def key_by_key() -> Iterator[None]:
    """Keys come one by one and are not shown. Ctrl-C interrupts as always."""
    if not _POSIX:
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def line_by_line() -> Iterator[None]:
    """Within `key_by_key`: a line can be typed and edited."""
    if not _POSIX:
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    lines = termios.tcgetattr(terminal)
    lines[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, lines)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def read() -> str:
    """Waits for a key. One that sends several characters, as arrows do, gives ``ESC`` alone;
    the end of input gives nothing."""
    if not _POSIX:
        return click.getchar()[:1]
    terminal = sys.stdin.fileno()
    key = os.read(terminal, 1)
    if key == b"\x1b":
        while select.select([terminal], [], [], 0)[0] and os.read(terminal, 1):
            pass
    return key.decode("ascii", "replace")
