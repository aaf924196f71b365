"""Without a GPU the kernels run in Triton's interpreter, which must be chosen before the import."""

import os

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

pytest.importorskip("triton")


@pytest.fixture(scope="session")
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
