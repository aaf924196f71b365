"""The keys of each sequence, looked up the slow, plain way; for the oracle and the baselines."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from grouped_decode.arguments import Arguments


def key_slots(args: Arguments) -> Iterator[torch.Tensor]:
    """For each sequence of the batch, the slots of the keys inside the window, oldest first."""
    indptr = args.kv_indptr.tolist()
    tails = None if args.last_page_len is None else args.last_page_len.tolist()
    for row in range(args.batch):
        pages = args.kv_indices[indptr[row] : indptr[row + 1]].long()
        offsets = torch.arange(args.page_size, device=pages.device)
        slots = (pages[:, None] * args.page_size + offsets).flatten()
        if tails is not None and len(pages):
            slots = slots[: (len(pages) - 1) * args.page_size + tails[row]]
        yield slots if args.window is None else slots[-args.window :]
