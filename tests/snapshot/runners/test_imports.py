"""A package that is missing or broken is said in words, with the command that repairs it."""

from __future__ import annotations

import sys

import pytest

from snapshot.errors import RunError
from snapshot.runners.imports import unimportable
from snapshot.runners.worker import load_reference


@pytest.mark.parametrize(
    ("error", "said", "got"),
    [
        (ModuleNotFoundError("no torch", name="torch"), "torch, which is not installed", "None"),
        (ImportError("cannot import name 'x'", name="peft"), "cannot be imported", "name 'x'"),
        (OSError("libcudart.so.12: cannot open"), "cannot be imported", "libcudart.so.12"),
        (ModuleNotFoundError("nameless"), "cannot be imported", "nameless"),
    ],
)
def test_what_is_missing_is_named(error: Exception, said: str, got: str) -> None:
    told = unimportable("the reference needs", error, "pip install 'goldens[lora]'")
    assert said in told.what and got in str(told.got) and told.hint and told.where


def test_a_broken_torch_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "snapshot.runners.reference":
                raise OSError("libtorch.so: undefined symbol")

    monkeypatch.delitem(sys.modules, "snapshot.runners.reference", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(RunError, match="cannot be imported") as error:
        load_reference(None, "float32")  # type: ignore[arg-type]
    assert "undefined symbol" in str(error.value.got)
