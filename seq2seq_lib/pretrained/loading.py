"""Trained models that come with the library, each with a card that describes it.

Weights are stored in half precision, which halves the download, and computed with in
single precision. A model is loaded only if its file is the one its card describes.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib.configuration import from_mapping
from seq2seq_lib.models.saved import SavedModel, load_model
from seq2seq_lib.pretrained.stored_results import read_result

WEIGHTS = Path(str(resources.files("seq2seq_lib.pretrained"))) / "weights"
"""The models that come with the library, each with its card."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What to know before a model is used.

    Attributes:
        name: of the model.
        task: what it does.
        data: what it learned from.
        split: the name of the data split; only its test part may be scored.
        recipe: how it was trained.
        averaged: of how many trained models the weights are the mean.
        search: the search options its score belongs to.
        parameters: how many weights.
        sha256: checksum of its file.
        licence: on what terms it may be used.
        limits: what not to expect of it.
    """

    name: str
    task: str
    data: str
    split: str
    recipe: str
    averaged: int
    search: Mapping[str, Any]
    parameters: int
    sha256: str
    licence: str
    limits: str

    @property
    def results(self) -> dict[str, Any]:
        """The test scores that ``seq2seq evaluate --store`` wrote for these weights.

        Raises:
            ValueError: there are none.
        """
        results: dict[str, Any] = read_result(f"evaluations/{self.name}.json")
        if results["sha256"] != self.sha256:
            raise ValueError(
                f"the stored scores of {self.name} belong to other weights "
                f"({results['sha256'][:12]}…, expected {self.sha256[:12]}…): run "
                f"seq2seq evaluate {self.name} --part test --store DIRECTORY."
            )
        return results


@dataclass(frozen=True)
class PretrainedModel(SavedModel):
    """A model that comes with the library.

    Attributes:
        card: what to know about it.
    """

    card: Card


def names(directory: Path = WEIGHTS) -> list[str]:
    """The models that come with the library."""
    return sorted(path.stem for path in directory.glob("*.safetensors"))


def load(
    name: str, *, directory: Path = WEIGHTS, device: torch.device | None = None
) -> PretrainedModel:
    """A trained model by its name, ready to be used.

    Args:
        name: one of ``names()``.
        directory: where weights and cards are.
        device: where the weights shall be; the fastest there is, if not said.

    Raises:
        ValueError: there is no such model, or its file is not the one of its card.
    """
    path = directory / f"{name}.safetensors"
    if name not in names(directory):
        raise ValueError(
            f"no model {name!r}: expected one of {', '.join(names(directory)) or '—'}."
        )
    card = read_card(name, directory=directory)
    found = checksum(path)
    if found != card.sha256:
        raise ValueError(
            f"{path} has the checksum {found[:12]}…, but its card says "
            f"{card.sha256[:12]}…: the file was damaged or replaced. Install the "
            "library again."
        )
    saved = load_model(path, device=device)
    return PretrainedModel(
        saved.model,
        saved.source_vocabulary,
        saved.target_vocabulary,
        saved.split,
        card,
        task=saved.task,
    )


def read_card(name: str, *, directory: Path = WEIGHTS) -> Card:
    """The card of a model that comes with the library.

    Raises:
        ValueError: it is missing or not a card.
    """
    path = directory / f"{name}.json"
    try:
        return from_mapping(Card, json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is no model card ({error}): install the library again."
        ) from error


def open_model(
    name: str, *, directory: Path = WEIGHTS, device: torch.device | None = None
) -> SavedModel:
    """A model that comes with the library, or one of your own.

    Args:
        name: one of ``names()``, or a file that training wrote.
        directory: where weights and cards are.
        device: where the weights shall be; the fastest there is, if not said.

    Raises:
        ValueError: it is neither.
    """
    if name in names(directory):
        return load(name, directory=directory, device=device)
    if Path(name).is_file():
        return load_model(name, device=device)
    raise ValueError(
        f"no model {name!r}: expected a file, or one of "
        f"{', '.join(names(directory)) or '—'}."
    )


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
