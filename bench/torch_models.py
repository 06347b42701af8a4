#!/usr/bin/env python3
"""PyTorch's side of `weft bench models`: a training step of each model of bench/workloads.json, in each of PyTorch's
modes; one JSON object a line, with the time of every mode and `ms` of the fastest.

    bench/torch_models.py                          all models on the device there is, with its sizes
    bench/torch_models.py --only vit-s16 lstm-2x512
    bench/torch_models.py --check FOLDER --sizes tiny
                                                   measures nothing: computes three steps from the weights and batches
                                                   that `weft bench models --sizes tiny --write FOLDER` wrote, and holds
                                                   the losses against Weft's
"""
import argparse
import sys

import torch_modes as modes
import torch
from torch import nn

import torch_image_models
import torch_text_models
from torch_gpt import read_safetensors
from workloads import table

MODELS = {**torch_text_models.MODELS, **torch_image_models.MODELS}


class Step:
    """A training step of a row of the table with the sizes of "gpu", "cpu" or "tiny"."""

    def __init__(self, row, sizes, device):
        self.device, self.size = device, torch_text_models.Size(row[sizes])
        torch.manual_seed(0)
        kind = MODELS[row["model"]]
        self.model, self.batch = kind(self.size).to(device), [part.to(device) for part in kind.batch(self.size)]
        if device == "cuda" or any(isinstance(m, nn.Conv2d) for m in self.model.modules()):
            self.model.to(memory_format=torch.channels_last)
        self.run, self.optimizer_name = self.model, row["optimizer"]

    def start(self, mode="eager"):
        parameters = list(self.model.parameters())
        if self.optimizer_name == "sgd":
            self.optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, fused=True)
        else:
            self.optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, fused=True)
        self.run = modes.in_mode(self.model, mode)
        return self

    def __call__(self):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.size.dtype == "bf16"):
            loss = self.run(*self.batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item() if self.device == "cpu" else loss


def as_recurrent(name, tensor, hidden):
    """PyTorch's names and values of a parameter of Weft's LSTM and GRU: PyTorch has two biases."""
    _, layer, part = name.split(".")
    if part == "bhn":
        return {f"cells.bias_hh_l{layer}": torch.cat((tensor.new_zeros(2 * hidden), tensor))}
    kind = {"Wx": "weight_ih", "Wh": "weight_hh", "b": "bias_ih", "bias": "bias_ih"}[part]
    zero = {f"cells.bias_hh_l{layer}": torch.zeros_like(tensor)} if part == "bias" else {}
    return {f"cells.{kind}_l{layer}": tensor, **zero}


def load(step, path):
    """Sets weights and batch to those of a file that Weft wrote, and returns its losses."""
    stored = read_safetensors(path)
    kinds = dict(step.model.named_modules())
    weights = {}
    for key, tensor in stored.items():
        if not key.startswith("parameter."):
            continue
        name = key.removeprefix("parameter.")
        tensor, owner = tensor.float(), kinds.get(name.rpartition(".")[0])
        if name.startswith("cells."):
            weights.update(as_recurrent(name, tensor, step.size.width))
            continue
        if isinstance(owner, nn.ConvTranspose2d) and tensor.dim() == 4:
            tensor = tensor.permute(3, 0, 1, 2)
        elif isinstance(owner, (nn.Conv1d, nn.Conv2d)) and tensor.dim() > 2:
            tensor = tensor.movedim(-1, 1)
        weights[name] = tensor
    wanted = {name for name in step.model.state_dict() if not name.endswith("num_batches_tracked")}
    if wanted != set(weights):
        raise ValueError(f"the parameters differ: {sorted(wanted ^ set(weights))}")
    step.model.load_state_dict(weights, strict=False)
    for i, part in enumerate(step.batch):
        step.batch[i] = stored[f"batch.{i}"].to(part.dtype).reshape(part.shape)
    return stored["losses"].tolist()


def is_random(size):
    return size.get("dropout", 0) > 0 or size.get("attention_dropout", 0) > 0 or "latent" in size and "inputs" in size


def check(row, sizes, path):
    """Holds three losses against Weft's: the first to rounding, the next ones, after updates of both, more loosely.
    Where numbers are drawn, both draw their own."""
    step = Step(row, sizes, "cpu").start()
    theirs = load(step, path)
    ours = [step() for _ in range(3)]
    coarse = step.size.dtype == "bf16"
    bounds = [0.3] * 3 if is_random(step.size) else [3e-2, 6e-2, 0.1] if coarse else [1e-4, 1e-3, 3e-3]
    apart = [abs(a - b) / max(abs(b), 1e-2) for a, b in zip(theirs, ours)]
    modes.say("models_check", name=row["name"], weft=theirs, torch=ours, apart=max(apart))
    return all(a <= bound for a, bound in zip(apart, bounds))


def options():
    parser = argparse.ArgumentParser(description="PyTorch beside `weft bench models`.")
    modes.add_options(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these rows of the table")
    parser.add_argument("--check", metavar="FOLDER", help="hold losses against those that Weft wrote")
    return parser.parse_args()


def main():
    o = options()
    modes.prepare(o.device, o.threads)
    sizes = o.sizes or ("gpu" if o.device == "cuda" else "cpu")
    rows = [row for row in table()["models"] if not o.only or row["name"] in o.only]
    if o.check:
        wrong = [row["name"] for row in rows if not check(row, sizes, f"{o.check}/{row['name']}.safetensors")]
        return sys.exit(f"losses differ: {', '.join(wrong)}" if wrong else 0)
    for row in rows:
        modes.numerics(row[sizes]["dtype"])
        make = lambda mode: Step(row, sizes, o.device).start(mode)
        best = modes.best_of(row["name"], o.device, o.modes or modes.modes_on(o.device), make)
        if best:
            modes.say("models", name=row["name"], dtype=row[sizes]["dtype"], threads=torch.get_num_threads(), **best)


if __name__ == "__main__":
    main()
