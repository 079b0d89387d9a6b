"""Damage to the files of a folder, drawn by a seed."""

import json
import os
import random
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from halfgraph.graph.manifest import MANIFEST, write_manifest

DEEP = "[" * 200_000
Change = Callable[[Path, Path, random.Random], None]  # of a file, with the same file of another folder


class Damage(NamedTuple):
    """One kind of damage to one file; the manifest stays as it was, is removed, or is made to fit the damage."""

    file: str
    kind: str
    manifest: str
    seed: int

    def __str__(self) -> str:
        return f"{self.file}-{self.kind}-{self.manifest}"

    def apply(self, folder: Path, other: Path) -> None:
        """Damage a file of a folder; `other` is a folder of the same kind with other content."""
        path = folder / self.file
        KINDS[self.kind](path, other / self.file, random.Random(self.seed))
        manifest = path.parent / MANIFEST
        if self.manifest == "removed" and not self.file.endswith(MANIFEST):
            manifest.unlink(missing_ok=True)
        elif self.manifest == "renewed" and manifest.is_file() and not self.file.endswith(MANIFEST):
            write_manifest(path.parent)


def draw(files: list[str], count: int, seed: int) -> Iterator[Damage]:
    """Draw different damages, all kinds and all files about equally often."""
    rng = random.Random(seed)
    every = [(file, kind, how) for file in files for kind in kinds_of(file) for how in ("kept", "removed", "renewed")]
    rng.shuffle(every)
    for file, kind, how in every[:count]:
        yield Damage(file, kind, how, rng.randrange(2**32))


def kinds_of(file: str) -> list[str]:
    """The kinds of damage that a file can take."""
    ending = file.rpartition(".")[2]
    return [kind for kind in KINDS if "-" not in kind or kind.split("-")[0] == ending]


def _bytes(change: Callable[[bytes, random.Random], bytes]) -> Change:
    def damage(path: Path, _: Path, rng: random.Random) -> None:
        path.write_bytes(change(path.read_bytes(), rng))

    return damage


def _flip(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content or b"\0")
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _replace(path: Path, make: Callable[[], object]) -> None:
    path.unlink()
    make()


def _link(path: Path, other: Path, rng: random.Random) -> None:
    _replace(path, lambda: path.symlink_to(other.resolve()))


def _other(path: Path, other: Path, rng: random.Random) -> None:
    shutil.copyfile(other if other.is_file() else __file__, path)


def _sparse(path: Path, other: Path, rng: random.Random) -> None:
    os.truncate(path, 300_000_000)


def _array(change: Callable[[Any, random.Random], Any]) -> Change:
    return lambda path, _, rng: _save(path, change(np.load(path), rng))


def _save(path: Path, array: Any) -> None:
    with path.open("wb") as file:
        np.save(file, array)


def _set_one(value: float) -> Callable[[Any, random.Random], Any]:
    def change(array: Any, rng: random.Random) -> Any:
        array = array.copy()
        if array.size:
            array.reshape(-1)[rng.randrange(array.size)] = np.array(value).astype(array.dtype)
        return array

    return change


def _tensors(change: Callable[[torch.Tensor, random.Random], torch.Tensor]) -> Change:
    def damage(path: Path, _: Path, rng: random.Random) -> None:
        tensors = load_file(path)
        name = rng.choice(sorted(tensors))
        tensors[name] = change(tensors[name].clone(), rng).contiguous()
        save_file(tensors, path, _metadata(path))

    return damage


def _metadata(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return dict(file.metadata() or {})


def _set_number(value: float) -> Callable[[torch.Tensor, random.Random], torch.Tensor]:
    def change(tensor: torch.Tensor, rng: random.Random) -> torch.Tensor:
        tensor.view(-1)[rng.randrange(tensor.numel())] = value
        return tensor

    return change


def _drop_tensor(path: Path, _: Path, rng: random.Random) -> None:
    tensors, about = load_file(path), _metadata(path)
    del tensors[rng.choice(sorted(tensors))]
    save_file(tensors, path, about)


def _about(path: Path, _: Path, rng: random.Random) -> None:
    about = _metadata(path)
    for name in about:
        about[name] = rng.choice(["", "x", "-1", "null", DEEP, "[]", '{"step": -1}', "9" * 5000])
    save_file(load_file(path), path, about)


def _json(change: Callable[[dict[str, Any], random.Random], Any]) -> Change:
    def damage(path: Path, _: Path, rng: random.Random) -> None:
        path.write_text(json.dumps(change(json.loads(path.read_text()), rng)))

    return damage


def _somewhere(content: dict[str, Any], rng: random.Random) -> tuple[dict[str, Any], str]:
    """A field anywhere in an object."""
    places = [(content, name) for name in content]
    for inner in (value for value in content.values() if isinstance(value, dict) and value):
        places.append(_somewhere(inner, rng))
    return rng.choice(places)


def _drop_field(content: dict[str, Any], rng: random.Random) -> Any:
    inside, name = _somewhere(content, rng)
    del inside[name]
    return content


def _change_field(content: dict[str, Any], rng: random.Random) -> Any:
    inside, name = _somewhere(content, rng)
    inside[name] = rng.choice([None, -1, 10**30, 1e308, float("nan"), "x", [], {}, [[]], [-5], True, {"x": [None]}])
    return content


def _toml(path: Path, _: Path, rng: random.Random) -> None:
    lines = path.read_text().splitlines()
    number = rng.choice([i for i, line in enumerate(lines) if "=" in line])
    name = lines[number].partition("=")[0]
    value = rng.choice(["-1", "nan", "inf", '"x"', "[]", "99999999999999999999", "0", "1e300", "true"])
    lines[number] = f"{name}= {value}"
    path.write_text("\n".join(lines))
    tomllib.loads(path.read_text())


KINDS: dict[str, Change] = {
    "missing": lambda path, *_: path.unlink(),
    "empty": _bytes(lambda *_: b""),
    "cut": _bytes(lambda content, rng: content[: rng.randrange(max(1, len(content)))]),
    "longer": _bytes(lambda content, rng: content + rng.randbytes(rng.randrange(1, 99))),
    "flipped": _bytes(_flip),
    "random": _bytes(lambda content, rng: rng.randbytes(len(content))),
    "sparse": _sparse,
    "other": _other,
    "link": _link,
    "loop": lambda path, *_: _replace(path, lambda: path.symlink_to(path)),
    "folder": lambda path, *_: _replace(path, path.mkdir),
    "pipe": lambda path, *_: _replace(path, lambda: os.mkfifo(path)),
    "npy-type": _array(lambda array, _: array.astype(np.float64)),
    "npy-wide": _array(lambda array, _: array.astype(np.int64) if array.dtype != np.int64 else array.astype(np.int32)),
    "npy-shape": _array(lambda array, _: array.reshape(1, -1)),
    "npy-short": _array(lambda array, rng: array[: rng.randrange(max(1, len(array)))]),
    "npy-negative": _array(_set_one(-1)),
    "npy-large": _array(_set_one(2**31 - 1)),
    "npy-shuffled": _array(lambda array, rng: array[rng.sample(range(len(array)), len(array))]),
    "safetensors-nan": _tensors(_set_number(float("nan"))),
    "safetensors-infinite": _tensors(_set_number(float("inf"))),
    "safetensors-type": _tensors(lambda tensor, _: tensor.double()),
    "safetensors-shape": _tensors(lambda tensor, _: tensor.view(1, -1)),
    "safetensors-short": _tensors(lambda tensor, _: tensor[:-1]),
    "safetensors-drop": _drop_tensor,
    "safetensors-about": _about,
    "json-deep": _bytes(lambda *_: DEEP.encode()),
    "json-deep_field": lambda path, *_: path.write_text('{"format": 1, "x": ' + DEEP) and None,
    "json-drop": _json(_drop_field),
    "json-change": _json(_change_field),
    "json-list": _json(lambda content, _: [content]),
    "toml-change": _toml,
    "toml-deep": _bytes(lambda content, _: content + b"\nx = " + DEEP.encode()),
}
