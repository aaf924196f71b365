"""The nouns of kernel suites: frozen, without behaviour of their own.

As in `snapshot.model`: nothing here computes, and torch is never imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from snapshot.difference import RowErrors
from snapshot.model import Observation
from snapshot.result import Result

DECODE = "grouped-decode"
"""The kind of suite; also what stands in its case files."""

OUT, LSE = "out", "lse"
"""The arrays of a kernel's observation: out [B, Hq, Dv], lse [B, Hq] float32 in nats."""


@dataclass(frozen=True)
class Tensor:
    """One array as a whole.

    Attributes:
        dtype, shape: as the kernel gave it.
        digest: sha256 over dtype, shape and bytes (see `store.blob.digest`), 64 hex digits.
        norm: L2 norm of its finite elements.
    """

    dtype: str
    shape: tuple[int, ...]
    digest: str
    norm: float


@dataclass(frozen=True)
class Errors:
    """How far an array is from the float64 oracle. A row is all axes but the last.

    Attributes:
        compared: elements compared, the finite ones; 0 means that nothing was: never close.
        rel_l2: the worst row's relative L2 error (absolute where the oracle's row is zero).
        row: that row: (sequence, head).
        row_ulp: largest distance in that row, in units in the last place of the array's dtype,
            from the oracle rounded to it.
        max_abs: largest absolute error of any element.
        ulp_p50, ulp_max: median and largest such distance of all elements.
    """

    compared: int
    rel_l2: float
    row: tuple[int, ...]
    row_ulp: int
    max_abs: float
    ulp_p50: float
    ulp_max: int


@dataclass(frozen=True)
class LseError:
    """The largest absolute error of the log-sum-exp, in nats, and its row (sequence, head).

    Infinite where exactly one of kernel and oracle is -inf.
    """

    abs: float
    row: tuple[int, ...]


@dataclass(frozen=True)
class Misplaced:
    """Values that are not finite where the oracle's are, or not its own infinity.

    Attributes:
        array: ``out`` or ``lse``.
        count: how many.
        first: coordinates of the first one in C order: (sequence, head, element).
        value: that value, as text.
        pattern: sha256 over the places, 64 hex digits: equal where all of them are.
        rows: how many rows hold one (kept out of the files, as are the next three).
        sequences, heads: in which of them those rows lie, ascending.
        whole: whether every element of those rows is one.
    """

    array: str
    count: int
    first: tuple[int, ...]
    value: str
    pattern: str
    rows: int = field(default=0, compare=False)
    sequences: tuple[int, ...] = field(default=(), compare=False)
    heads: tuple[int, ...] = field(default=(), compare=False)
    whole: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Masked:
    """Rows of sequences without keys that an ``allow`` entry takes out of every comparison.

    Attributes:
        sequences: those without keys.
        elements: values of `out` in their rows.
        nonfinite, nonzero: how many of them are NaN or infinite, and finite but not zero.
    """

    sequences: tuple[int, ...]
    elements: int
    nonfinite: int
    nonzero: int


@dataclass(frozen=True)
class Computed:
    """The readable part of one run of one kernel on one case.

    Attributes:
        lengths: keys of each sequence.
        out, lse: what it gave; lse is None where it gives none.
        errors: of `out` against the float64 oracle.
        baseline: the same of plain torch in the same dtype: how far off is usual.
        lse_error: of `lse`.
        misplaced: NaN and infinities where none belong.
        causes: for a result that is not right: what it depends on and must not (kept out of
            the files: no such result is recorded).
        rows: relative L2 error by sequence and head (kept out of the files too).
        masked: rows that count for nothing above and hold in `out` and `lse` what the contract
            says, so that a golden needs no mask of its own (kept out of the files too).
    """

    lengths: tuple[int, ...]
    out: Tensor
    lse: Tensor | None
    errors: Errors
    baseline: Errors
    lse_error: LseError | None
    misplaced: tuple[Misplaced, ...] = ()
    causes: tuple[str, ...] = ()
    rows: RowErrors | None = None
    masked: Masked | None = None


@dataclass(frozen=True)
class NotRun:
    """A case that a subject did not run, and why: neither a pass nor a failure."""

    case: str
    reason: str


KernelObservation = Observation[Computed]


@dataclass(frozen=True)
class Moved:
    """How far a result is from its own golden, bit for bit.

    Attributes:
        elements: elements whose bits differ; None where the golden keeps only some rows.
        rows: rows that hold one, of all rows.
        of_rows: all rows.
        sampled: rows that the golden keeps, which the distances below are over; None: all.
        compared: elements of those, the finite ones.
        ulp_p50, ulp_max: median and largest distance, in units in the last place.
        row: the row with the largest.
    """

    elements: int | None
    rows: int
    of_rows: int
    compared: int
    ulp_p50: float
    ulp_max: int
    row: tuple[int, ...]
    sampled: int | None = None

    @property
    def distance(self) -> str:
        """``up to 2 ulp``, and over which rows where those are not all."""
        if self.sampled is None:
            return f"up to {self.ulp_max} ulp"
        over = f"of {self.sampled} sampled row{'s' * (self.sampled != 1)}"
        if self.rows and not self.ulp_max:
            return f"how far is not known: no bit moved in any {over}"
        return f"up to {self.ulp_max} ulp in the worst {over}"


@dataclass(frozen=True)
class KernelResult(Result):
    """The verdict on one case of one kernel.

    Attributes:
        computed: the kernel's figures here and now; None where it gave nothing.
        recorded: those of its golden.
        moved: between the two; None where nothing moved or nothing compares.
    """

    computed: Computed | None = None
    recorded: Computed | None = None
    moved: Moved | None = None
