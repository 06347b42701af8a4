"""The examples of other frameworks, where those are installed."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


@pytest.mark.parametrize("module, file", [("torch", "with_pytorch.py"), ("torch", "kernel.py"), ("jax", "with_jax.py")])
def test_examples_run(module, file, capsys):
    pytest.importorskip(module)
    runpy.run_path(str(EXAMPLES / file), run_name="__main__")
    assert "gradients agree" in capsys.readouterr().out
