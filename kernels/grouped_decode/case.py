"""One attention workload, described by its key."""

from __future__ import annotations

import re
from dataclasses import dataclass

DTYPES = ("float16", "bfloat16", "float32")
KEY = re.compile(
    r"B(?P<batch>\d+)-H(?P<q_heads>\d+)-(?P<kv_heads>\d+)-D(?P<dk>\d+)-(?P<dv>\d+)"
    r"-S(?P<length>\d+)-(?P<dtype>float16|bfloat16|float32)(?P<traits>(?:-[a-z0-9]+)*)"
)

TRAITS = {
    # values
    "peaked": "queries four times as large: a few keys take all the weight",
    "structured": "V is a pattern of key, head and column, so that a wrong key shows",
    "constant": "V is 0.5 everywhere: the output is known, and the gain shows",
    # layout of the cache
    "ragged": "lengths S, 0, 1, S/2, S-1, S/3 in turn",
    "shuffled": "pages in random order",
    "reversed": "pages in descending order",
    "page<N>": "pages of N slots, with tails",
    "interleaved": "K and V of a slot and head lie side by side in one buffer",
    "faraway": "slots whose element offset is beyond 2**31",
    "mla": "V is the first Dv columns of K",
    # what nobody owns
    "nanpad": "NaN in slots that no sequence owns",
    "garbagepad": "large finite numbers in slots that no sequence owns",
    "nanout": "output and scratch hold NaN before the call",
    # options of the call
    "window<N>": "only the last N keys count",
    "cap<N>": "scores capped at N by tanh",
    "sinks": "one sink logit a query head",
    "e4m3": "K and V stored as float8_e4m3fn, with scales",
    "e5m2": "K and V stored as float8_e5m2, with scales",
}
LAYOUT = {"shuffled", "reversed", "interleaved", "faraway", "nanpad", "garbagepad", "nanout"}
_NUMBERED = re.compile(r"(page|window|cap)([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Case:
    """A workload: `batch` sequences of `length` keys (see the trait `ragged`).

    Attributes:
        batch, q_heads, kv_heads, dk, dv, length: sizes; dk and dv are widths of K's and V's heads.
        dtype: of queries and outputs, and of the cache without an fp8 trait.
        traits: names from `TRAITS`, sorted.

    Raises:
        ValueError: an unknown dtype or trait, or traits out of order or given twice.
    """

    batch: int
    q_heads: int
    kv_heads: int
    dk: int
    dv: int
    length: int
    dtype: str = "float16"
    traits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype: expected one of {', '.join(DTYPES)}, got {self.dtype!r}")
        for trait in self.traits:
            if _NUMBERED.sub(r"\1<N>", trait) not in TRAITS:
                raise ValueError(f"trait: expected one of {', '.join(TRAITS)}, got {trait!r}")
        if list(self.traits) != sorted(set(self.traits)):
            raise ValueError(f"traits: expected sorted and distinct, got {self.traits}")

    @classmethod
    def parse(cls, key: str) -> Case:
        """The case of a key such as ``B2-H128-1-D576-512-S100-float16-mla-nanpad``."""
        match = KEY.fullmatch(key)
        if match is None:
            raise ValueError(
                f"case: expected B<batch>-H<query heads>-<KV heads>-D<K width>-<V width>-S<length>"
                f"-<dtype>[-<trait>...], got {key!r}"
            )
        fields = match.groupdict()
        traits = tuple(fields.pop("traits").split("-")[1:])
        dtype = fields.pop("dtype")
        return cls(**{name: int(text) for name, text in fields.items()}, dtype=dtype, traits=traits)

    @property
    def key(self) -> str:
        sizes = f"B{self.batch}-H{self.q_heads}-{self.kv_heads}-D{self.dk}-{self.dv}-S{self.length}"
        return "-".join((sizes, self.dtype, *self.traits))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Keys of each sequence."""
        s = self.length
        if "ragged" not in self.traits:
            return (s,) * self.batch
        cycle = (s, 0, min(1, s), s // 2, max(s - 1, 0), s // 3)
        return tuple(cycle[i % len(cycle)] for i in range(self.batch))

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads

    @property
    def shared_v(self) -> bool:
        return "mla" in self.traits

    @property
    def kv_dtype(self) -> str:
        names = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
        return next((names[t] for t in self.traits if t in names), self.dtype)

    @property
    def fp8(self) -> bool:
        return self.kv_dtype != self.dtype

    @property
    def page_size(self) -> int:
        return self._number("page") or 1

    @property
    def window(self) -> int | None:
        return self._number("window")

    @property
    def logit_cap(self) -> float:
        return float(self._number("cap") or 0)

    @property
    def sinks(self) -> bool:
        return "sinks" in self.traits

    @property
    def data_key(self) -> str:
        """What the values depend on: layouts of the same values share it, dtypes too."""
        values = [t for t in self.traits if t not in LAYOUT and not t.startswith("page")]
        sizes = (self.batch, self.q_heads, self.kv_heads, self.dk, self.dv, self.length)
        return "-".join((*map(str, sizes), *values))

    def _number(self, prefix: str) -> int | None:
        for trait in self.traits:
            match = _NUMBERED.fullmatch(trait)
            if match and match[1] == prefix:
                return int(match[2])
        return None
