"""Every error a user can meet.

    GoldensError
    ├── UsageError            exit 2  the command line asks for something impossible
    │   └── ConfigError       exit 2  goldens.toml or a file that it names is wrong
    ├── StoreError            exit 1  something under goldens/ cannot be used
    │   ├── MissingGolden             nothing was recorded there
    │   ├── DamagedGolden             it is there and cannot be trusted; never overwritten
    │   └── NewerSchema               written by a later version of goldens
    ├── RecordRefused         exit 1  what was observed must not become a golden
    └── RunError              exit 1  the model, the kernel or the engine could not be run

An error says what is wrong, where, what was expected, what was got, and what to
try next. The command line prints it; a traceback is a defect of ours.
"""

from __future__ import annotations


class GoldensError(Exception):
    """Base of all errors that are meant for the user.

    Args:
        what: one sentence, without a final period.
        where: the file, key, case or row concerned.
        expected: what would have been right.
        got: what was found instead.
        hint: what to try next, usually a command.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        rows = (
            ("where", self.where),
            ("expected", self.expected),
            ("got", self.got),
            ("try", self.hint),
        )
        return "\n".join(
            [self.what, *(f"  {name + ':':<10}{text}" for name, text in rows if text is not None)]
        )


class UsageError(GoldensError):
    """The command line asks for something impossible."""

    exit_code = 2


class ConfigError(UsageError):
    """goldens.toml, or a file that it names, is wrong."""


class StoreError(GoldensError):
    """Something under goldens/ cannot be used."""


class MissingGolden(StoreError):
    """Nothing was recorded under this name."""


class DamagedGolden(StoreError):
    """A file is there and cannot be trusted. It is an error, never "missing"."""


class NewerSchema(StoreError):
    """The file was written by a later version of goldens."""


class RecordRefused(GoldensError):
    """What was observed must not become a golden; the message names the rows."""


class RunError(GoldensError):
    """The model, the kernel or the engine could not be run."""
