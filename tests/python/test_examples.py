"""The examples: those of other frameworks where these are installed."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


@pytest.mark.parametrize("module, file", [("torch", "with_pytorch.py"), ("torch", "kernel.py"), ("jax", "with_jax.py")])
def test_examples_run(module, file, capsys):
    pytest.importorskip(module)
    runpy.run_path(str(EXAMPLES / file), run_name="__main__")
    assert "gradients agree" in capsys.readouterr().out


def test_exported_training(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["export_training.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "export_training.py"), run_name="__main__")
    assert "trained from the two files" in capsys.readouterr().out
    assert {file.name for file in tmp_path.iterdir()} == {"init.weft", "step.weft"}
