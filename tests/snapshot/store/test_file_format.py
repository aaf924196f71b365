"""docs/file-format.md is true: its example is a real file, its reader reads real files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import snapshot
from snapshot.model import Golden
from snapshot.store import Store, blob, canonical, casefile, migrate, schemas

PAGE = (Path(snapshot.__file__).parents[1] / "docs" / "file-format.md").read_text("utf-8")


def _block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_a_valid_case_file() -> None:
    text, value = canonical.parse(_block("json").encode(), "example")
    record = canonical.check_signed(text, value, "example")
    golden = casefile.decode(record, "example", lambda digests: {})
    assert schemas.problem(record, migrate.GOLDEN) is None
    path = f"goldens/{golden.suite}/{golden.slug}/{golden.subject}/{golden.case}.json"
    assert f"`{path}`" in PAGE


def test_the_reader_of_the_page_reads_what_the_store_writes(
    filled: Store, make_golden: Callable[..., Golden]
) -> None:
    names: dict[str, Any] = {}
    exec(_block("python"), names)
    slug = make_golden().slug
    for key in filled.cases("multi-lora", slug, "reference"):
        golden = filled.read("multi-lora", slug, "reference", key)
        case, arrays = names["read_case"](filled.root, "multi-lora", slug, "reference", key)
        assert case["output"]["text"] == golden.observation.output.text
        for name, array in golden.observation.arrays.items():
            assert blob.digest(arrays[name]) == blob.digest(array)
