"""``goldens env``."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from snapshot.cli import main
from snapshot.commands import env
from snapshot.fingerprint import Cpu, Device, Readings

CPU = Cpu("x86_64", capability="AVX512", features=frozenset({"sse41", "avx", "avx2"}), threads=2)
ON_CPU = Readings("cpu", "2.13.0+cpu", CPU, versions={"python": "3.11.7"})
ON_ROCM = Readings(
    "rocm",
    "2.11.0+rocm10.0",
    CPU,
    Device("gfx942", "AMD Instinct MI300X", 304),
    runtimes={"rocm": "10.0.0", "hip": "7.15.1"},
    runtime_source="the installed ROCm wheels",
    switches={"tf32_matmul": False},
    environment={"HIPBLASLT_X": "1"},
)
NO_DEVICE = dataclasses.replace(ON_ROCM, device=None, notes=("no device is visible",))


@pytest.fixture
def readings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Readings:
    monkeypatch.setattr(env, "probe", lambda device=None: request.param)
    return request.param


def goldens_env(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["env", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("readings", [ON_CPU], indirect=True)
def test_shows_what_selects_and_what_is_only_recorded(readings: Readings) -> None:
    text = goldens_env("--dtype", "bfloat16", "--batch-size", "3")
    assert text.startswith("cpu-avx512-avx2-t2-torch2.13-bfloat16-bs3\n")
    selects, recorded = text.split("only recorded")
    assert "avx512-avx2-t2" in selects and "2.13\n" in selects
    assert "2.13.0+cpu" in recorded and "3.11.7" in recorded
    assert "\x1b" not in text


@pytest.mark.parametrize("readings", [ON_ROCM], indirect=True)
def test_explain(readings: Readings) -> None:
    """C35: the reader sees which source gave the runtime, and that HIP says otherwise."""
    text = goldens_env("--explain")
    assert "from: the installed ROCm wheels" in text
    assert "from: the driver, of the first visible device: AMD Instinct MI300X" in text
    assert "changes with: the next major.minor of torch" in text
    assert "note: ROCm 10.0 is installed, torch was built with HIP 7.15" in text
    assert "tf32_matmul" in text and "off" in text and "HIPBLASLT_X=1" in text


@pytest.mark.parametrize("readings", [NO_DEVICE], indirect=True)
def test_no_device(readings: Readings) -> None:
    """C37: a build without a device has a key of its own, and says so."""
    text = goldens_env("--explain")
    assert text.startswith("rocm10.0-nodevice-torch2.11-float32\n")
    assert "note: no device is visible" in text
    assert "changes with: a visible device" in text


@pytest.mark.parametrize("readings", [ON_ROCM], indirect=True)
def test_json_is_stable(readings: Readings) -> None:
    text = goldens_env("--json", "--explain")
    assert text == goldens_env("--json", "--explain")
    report = json.loads(text)
    assert sorted(report) == ["explain", "goldens", "identity", "problem", "provenance", "slug"]
    assert report["slug"] == "rocm10.0-gfx942-torch2.11-float32"
    assert report["identity"]["runtime"] == "rocm10.0"
    assert report["explain"]["runtime"]["from"] == "the installed ROCm wheels"
    assert report["problem"] is None
    assert "explain" not in json.loads(goldens_env("--json"))


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 0 with what is known, and what to install for the rest."""
    monkeypatch.setitem(sys.modules, "torch", None)
    text = goldens_env("--explain")
    assert "torch is not installed" in text
    assert "pip install 'goldens[lora]'" in text
    assert "python" in text and "numpy" in text
    report = json.loads(goldens_env("--json"))
    assert report["slug"] is None and report["identity"] is None
    assert report["problem"] == "torch is not installed"
    assert report["provenance"]["python"]


def test_a_torch_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """C37: a missing driver library breaks the import itself."""
    (tmp_path / "torch.py").write_text('raise OSError("libamdhip64.so.7: cannot open")')
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "torch is installed and cannot be imported" in goldens_env()


@pytest.mark.parametrize("readings", [ON_ROCM], indirect=True)
def test_says_which_goldens_each_suite_is_held_to(
    readings: Readings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """C41: which baseline is used stands there, and why there is none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "goldens.toml").write_text(
        """[suites.s]
        kind = "lora-generation"
        model = "m"
        prompts = "p.jsonl"
        dtype = "float16"
        """
    )
    text = goldens_env()
    assert "s rocm10.0-gfx942-torch2.11-float16-bs1\n    MISSING: looked for" in text
    assert json.loads(goldens_env("--json"))["goldens"][0]["golden"] is None
