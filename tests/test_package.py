"""The distribution: what is in the wheel, what an import costs, who it lives beside."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def python(code: str, *path: Path, cwd: Path) -> str:
    """Runs code in a fresh interpreter with `path` before everything else."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, timeout=300)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (found,) = folder.glob("goldens-*.whl")
    return found


def test_the_wheel_holds_both_packages_and_the_schemas(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"snapshot", "grouped_decode"}
    schemas = {path.name for path in (ROOT / "schema").glob("*.json")}
    assert schemas and {f"snapshot/schema/{name}" for name in schemas} <= set(names)


def test_an_installed_wheel_finds_its_schemas(wheel: Path, tmp_path: Path) -> None:
    pip("install", "--no-deps", "--target", str(tmp_path / "site"), str(wheel))
    code = (
        "import snapshot.store.schemas as s; print(s.path('golden.v1')); s.validator('golden.v1')"
    )
    assert python(code, tmp_path / "site", cwd=tmp_path).startswith(str(tmp_path / "site"))


def test_a_checkout_finds_its_schemas(tmp_path: Path) -> None:
    code = "import snapshot.store.schemas as s; print(s.path('goldens-toml.v1'))"
    assert python(code, ROOT, cwd=tmp_path) == str(ROOT / "schema" / "goldens-toml.v1.json")


def test_lives_beside_hugging_faces_kernels(tmp_path: Path) -> None:
    """`kernels/` is a source root: it must neither hide nor be hidden by their package."""
    pip("install", "--no-deps", "--target", str(tmp_path / "site"), "kernels")
    code = "import kernels, grouped_decode, snapshot; print(kernels.__file__)"
    # The repository comes first on the path, as it does in an editable install.
    found = python(code, ROOT, ROOT / "kernels", tmp_path / "site", cwd=ROOT)
    assert found.startswith(str(tmp_path / "site"))


def test_transformers_does_not_take_the_folder_for_hugging_faces_kernels() -> None:
    pytest.importorskip("transformers")
    code = (
        "from transformers.utils.import_utils import is_kernels_available;"
        "print(is_kernels_available())"
    )
    assert python(code, ROOT, ROOT / "kernels", cwd=ROOT) == "False"


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from snapshot.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'torch', 'jsonschema', 'rich', 'zstandard'}\n"
        "print('imported:', *sorted(heavy & set(sys.modules)))"
    )
    assert python(code, ROOT, cwd=tmp_path).splitlines()[-1] == "imported:"


@pytest.mark.parametrize("module", ["snapshot.commands.verify", "snapshot.commands.status"])
def test_the_base_rooms_do_not_import_torch(module: str, tmp_path: Path) -> None:
    code = f"import sys, {module}; print('torch' in sys.modules)"
    assert python(code, ROOT, ROOT / "kernels", cwd=tmp_path) == "False"
