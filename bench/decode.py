"""Decode attention on this GPU: our kernel, torch's SDPA and the hardware's floor, in one run.

    python bench/decode.py [--cases REGEX] [--invariant]

Each pass walks over several input sets (other slots of one KV pool, page size 1, random order),
with the L2 cache flushed before; it is a CUDA graph of one call a set, timed with events. Printed
is the median over passes, a call, of the better of two rounds. SDPA gets the same tokens in order,
contiguous, query heads of a group as rows where head widths are over 256. The floor is
max(bytes / copy bandwidth, flops / matmul rate), both measured here; K and V count once.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch
from grouped_decode.attention import grouped_decode_attention
from grouped_decode.oracle import attention_oracle
from torch.nn.functional import scaled_dot_product_attention

FLUSH_BYTES, SET_BYTES, MAX_SETS = 256 << 20, 256 << 20, 32


@dataclass(frozen=True)
class Shape:
    """One benchmark case; `shared`: V is the first dv columns of K."""

    batch: int
    q_heads: int
    kv_heads: int
    dk: int
    dv: int
    length: int
    dtype: torch.dtype
    shared: bool = False

    @property
    def name(self) -> str:
        dims = f"d{self.dk}" if self.dk == self.dv else f"d{self.dk}/{self.dv}"
        kind = str(self.dtype).removeprefix("torch.")
        tail = " V=K" if self.shared else ""
        return f"b{self.batch} h{self.q_heads}/{self.kv_heads} {dims} s{self.length} {kind}{tail}"

    @property
    def kv_bytes(self) -> int:
        width = self.dk + (0 if self.shared else self.dv)
        return self.batch * self.length * self.kv_heads * width * 2

    @property
    def bytes(self) -> int:
        return self.kv_bytes + self.batch * self.q_heads * (self.dk + self.dv) * 2

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.length * self.q_heads * (self.dk + self.dv)


B, H = torch.bfloat16, torch.float16
SHAPES = [
    Shape(1, 32, 8, 128, 128, 8192, B),
    Shape(32, 32, 8, 128, 128, 4096, B),
    Shape(32, 32, 8, 128, 128, 8192, B),
    Shape(1, 32, 8, 128, 128, 131072, B),
    Shape(64, 64, 8, 128, 128, 8192, B),
    Shape(256, 32, 8, 128, 128, 1024, B),
    Shape(16, 40, 8, 128, 128, 4096, B),
    Shape(32, 128, 1, 576, 512, 8192, B, True),
    Shape(1, 128, 1, 576, 512, 32768, B, True),
    Shape(8, 32, 32, 64, 64, 4096, B),
    Shape(2, 16, 16, 64, 64, 500, H),
    Shape(2, 16, 1, 64, 64, 500, H),
    Shape(2, 128, 1, 80, 80, 500, H),
    Shape(32, 128, 2, 512, 512, 500, H),
    Shape(2, 128, 2, 512, 512, 500, H),
    Shape(2, 128, 1, 576, 512, 500, H),
    Shape(2, 128, 1, 576, 512, 500, H, True),
]


class Problem:
    """One input set of a shape: queries and a slot table into the shape's pool."""

    def __init__(self, shape: Shape, k: torch.Tensor, v: torch.Tensor, slots: torch.Tensor) -> None:
        self.shape, self.k, self.v, self.slots = shape, k, v, slots
        self.q = torch.randn(shape.batch, shape.q_heads, shape.dk, device="cuda", dtype=shape.dtype)
        ends = torch.arange(shape.batch + 1, device="cuda") * shape.length
        self.indptr = ends.to(torch.int32)
        self.out = torch.empty(
            shape.batch, shape.q_heads, shape.dv, device="cuda", dtype=shape.dtype
        )

    def ours(self, batch_invariant: bool) -> Callable[[], torch.Tensor]:
        return lambda: grouped_decode_attention(
            self.q, self.k, self.v, self.indptr, self.slots, out=self.out,
            batch_invariant=batch_invariant,
        )  # type: ignore[return-value]  # fmt: skip

    def sdpa(self) -> Callable[[], torch.Tensor]:
        s = self.shape

        def dense(pool: torch.Tensor) -> torch.Tensor:
            return pool[self.slots].view(s.batch, s.length, s.kv_heads, -1).transpose(1, 2)

        k = dense(self.k)
        v = k[..., : s.dv] if s.shared else dense(self.v)
        gqa = s.dk <= 256 and s.kv_heads < s.q_heads
        q = self.q.unsqueeze(2) if gqa else self.q.view(s.batch, s.kv_heads, -1, s.dk)
        return lambda: scaled_dot_product_attention(q, k, v, enable_gqa=gqa)


def problems(shape: Shape) -> list[Problem]:
    count = max(2, min(MAX_SETS, math.ceil(SET_BYTES / shape.kv_bytes)))
    tokens = shape.batch * shape.length
    make = lambda width: torch.randn(  # noqa: E731
        tokens * count + 64, shape.kv_heads, width, device="cuda", dtype=shape.dtype
    )
    k = make(shape.dk)
    v = k[..., : shape.dv] if shape.shared else make(shape.dv)
    order = torch.randperm(len(k) - 1, device="cuda") + 1
    return [Problem(shape, k, v, order[i * tokens : (i + 1) * tokens]) for i in range(count)]


class Clock:
    """Medians of graph replays, L2 flushed before each."""

    def __init__(self) -> None:
        self.cold = torch.zeros(FLUSH_BYTES // 4, device="cuda")

    def microseconds(self, calls: list[Callable[[], torch.Tensor]]) -> float:
        """Time of one call: the better of two rounds' medians."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                calls[0]()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = [call() for call in calls]
        best = self.passes(graph.replay) / len(calls)
        del results
        return best

    def passes(self, call: Callable[[], object]) -> float:
        """Time of `call` as it is, without a graph of its own."""
        repeats = max(7, min(40, int(70e3 / self._median(call, 2))))
        return min(self._median(call, repeats) for _ in range(2))

    def _median(self, call: Callable[[], object], repeats: int) -> float:
        events = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(repeats)
        ]
        for begin, end in events:
            self.cold.sum()
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) * 1e3 for begin, end in events)


def ceilings(clock: Clock) -> tuple[float, float]:
    """Copy bandwidth in TB/s (read + written) and bf16 matmul rate in TFLOP/s."""
    source, target = torch.randn(2, 1 << 30, device="cuda")
    copy = clock.passes(lambda: target.copy_(source))  # a graph's copy node is slower
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=B) for _ in range(2))
    matmul = clock.microseconds([lambda: a @ b] * 4)
    return 2 * (4 << 30) / copy / 1e6, 2 * 8192**3 / matmul / 1e6


def worst_error(problem: Problem, out: torch.Tensor) -> float:
    """Largest relative L2 over the (sequence, head) rows of the first two sequences."""
    rows = min(2, problem.shape.batch)
    truth, _ = attention_oracle(
        problem.q[:rows], problem.k, problem.v, problem.indptr[: rows + 1], problem.slots
    )
    error = (out[:rows].double() - truth).norm(dim=-1) / truth.norm(dim=-1)
    return float(error.nan_to_num(nan=math.inf).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default="", help="regular expression over the case names")
    parser.add_argument("--invariant", action="store_true", help="time batch_invariant=True too")
    args = parser.parse_args()
    torch.manual_seed(0)
    clock = Clock()
    copy, matmul = ceilings(clock)
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}: copy {copy:.2f} TB/s, ", end=""
    )
    print(f"bf16 matmul {matmul:.0f} TFLOP/s; us a call")
    print(
        f"{'case':40s} {'floor':>7s} {'ours':>8s} {'sdpa':>8s} {'sdpa/ours':>9s} {'err':>8s}",
        end="",
    )
    print(f" {'invariant':>9s} {'/ours':>6s}" if args.invariant else "")
    ratios = []
    for shape in SHAPES:
        if not re.search(args.cases, shape.name):
            continue
        sets = problems(shape)
        error = worst_error(sets[0], sets[0].ours(False)())
        ours = clock.microseconds([p.ours(False) for p in sets])
        sdpa = clock.microseconds([p.sdpa() for p in sets])
        floor = max(shape.bytes / copy, shape.flops / matmul) / 1e6
        ratios.append(sdpa / ours)
        line = (
            f"{shape.name:40s} {floor:7.1f} {ours:8.2f} {sdpa:8.2f} {ratios[-1]:9.2f} {error:8.1e}"
        )
        if args.invariant:
            steady = clock.microseconds([p.ours(True) for p in sets])
            line += f" {steady:9.2f} {steady / ours:6.2f}"
        print(line, flush=True)
        del sets
        torch.cuda.empty_cache()
    print(f"geometric mean of sdpa / ours: {statistics.geometric_mean(ratios):.3f}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
