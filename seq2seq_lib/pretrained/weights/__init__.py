"""Trained models that come with the library, each with a card that describes it.

Weights are stored in half precision, which halves the download, and computed with in
single precision. A model is loaded only if its file is the one its card describes.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib.configuration import from_mapping
from seq2seq_lib.files import write_whole
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models.saved import (
    SavedModel,
    load_model,
    load_weights,
    save_model,
    weights_of,
)
from seq2seq_lib.pretrained.results import result_text

DIRECTORY = Path(str(resources.files(__name__)))
LARGEST = 12_000_000
"""Bytes that one model may take."""
TOGETHER = 30_000_000
"""Bytes that all of them may take."""


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
        """The test scores that ``seq2seq evaluate --store`` wrote for this very file.

        Raises:
            ValueError: there are none.
        """
        results: dict[str, Any] = json.loads(
            result_text(f"evaluations/{self.name}.json")
        )
        if results["sha256"] != self.sha256:
            raise ValueError(
                f"the stored scores of {self.name} belong to other weights "
                f"({results['sha256'][:12]}…, expected {self.sha256[:12]}…): run "
                f"seq2seq evaluate {self.name} --part test --store."
            )
        return results


@dataclass(frozen=True)
class PretrainedModel(SavedModel):
    """A model that comes with the library.

    Attributes:
        card: what to know about it.
    """

    card: Card


@dataclass(frozen=True)
class _About:
    task: str
    data: str
    licence: str
    limits: str


_PRONUNCIATION = _About(
    task="pronunciation of English words: letters to ARPAbet phonemes without stress",
    data="The CMU Pronouncing Dictionary, Carnegie Mellon University",
    licence="weights: Apache-2.0; data: BSD-2-Clause",
    limits="North American English. Many entries are names, some of them foreign. One "
    "word at a time, so words spelled alike are not told apart; no digits or "
    "abbreviations.",
)
_TRANSLATION = _About(
    task="translation of short descriptions of photographs",
    data="Multi30k, task 1 (Elliott et al., 2016): 29,000 pairs of sentences",
    licence="weights: Apache-2.0; the sentences carry no licence of their own, and the "
    "terms of the photographs are for research and education",
    limits="Knows only what captions talk about: people, animals, streets, sports. "
    "Repeats the biases of captions, such as a guess at people's gender. Not for use "
    "where a wrong translation does harm.",
)
_TOY = _About(
    task="a made-up task of the course",
    data="generated",
    licence="Apache-2.0",
    limits="Good for nothing but a test.",
)


def _about(split: str) -> _About:
    if split.startswith("multi30k"):
        return _TRANSLATION
    return _TOY if split.startswith("toy") else _PRONUNCIATION


def names(directory: Path = DIRECTORY) -> list[str]:
    """The models that come with the library."""
    return sorted(path.stem for path in directory.glob("*.safetensors"))


def load(
    name: str, *, directory: Path = DIRECTORY, device: torch.device | None = None
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
    )


def read_card(name: str, *, directory: Path = DIRECTORY) -> Card:
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
    name: str, *, directory: Path = DIRECTORY, device: torch.device | None = None
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


def ship(
    models: Sequence[SavedModel],
    name: str,
    *,
    recipe: str,
    search: Mapping[str, Any],
    also_learned_from: str = "",
    directory: Path = DIRECTORY,
) -> Card:
    """Store a trained model, or the mean of several, with its card.

    Args:
        models: trained alike: same configuration, vocabularies and split.
        name: under which it will be loaded.
        recipe: the name of the recipe that trained them.
        search: the options of the search that was chosen on the development part.
        also_learned_from: what the card should name beside the corpus of the split.
        directory: where weights and cards are.

    Raises:
        ValueError: the models differ in kind, a weight does not fit into half
            precision, or the file would be too large. Nothing is written then.
    """
    model = average(models)
    first = models[0]
    for tensor in weights_of(model).values():
        if tensor.is_floating_point() and not tensor.half().isfinite().all():
            raise ValueError(
                f"a weight of {float(tensor.abs().max()):g} does not fit into half "
                "precision, whose largest number is 65504."
            )
    size = 2 * sum(tensor.numel() for tensor in weights_of(model).values())
    if size > LARGEST:
        raise ValueError(
            f"{name} would take {size:,} bytes: at most {LARGEST:,} are shipped."
        )
    path = directory / f"{name}.safetensors"
    half = SavedModel(
        model.half(), first.source_vocabulary, first.target_vocabulary, first.split
    )
    save_model(path, half)
    about = dataclasses.asdict(_about(first.split))
    if also_learned_from:
        about["data"] += f". {also_learned_from}"
    card = Card(
        name=name,
        split=first.split,
        recipe=recipe,
        averaged=len(models),
        search=dict(search),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        sha256=checksum(path),
        **about,
    )
    text = json.dumps(dataclasses.asdict(card), indent=2, ensure_ascii=False)
    write_whole(directory / f"{name}.json", text + "\n")
    return card


def average(models: Sequence[SavedModel]) -> EncoderDecoder:
    """A fresh model whose weights are the mean of those of models trained alike.

    Raises:
        ValueError: there are none, or they differ in kind.
    """
    if not models:
        raise ValueError("no models to average: expected at least one.")
    first = models[0]
    check_alike(models)
    assert first.model.config is not None
    model = first.model.config.build().eval()
    stored = [weights_of(saved.model) for saved in models]
    mean = {
        name: torch.stack([weights[name].double() for weights in stored]).mean(0)
        for name in stored[0]
    }
    load_weights(model, mean, origin="the average")
    return model


def check_alike(models: Sequence[SavedModel]) -> None:
    """Refuse models that do not share configuration, vocabularies and split.

    Dropout may differ: it changes how weights are learned, not what they mean.
    """

    def kind(saved: SavedModel) -> dict[str, object]:
        config = json.loads(saved.model.config.to_json()) if saved.model.config else {}
        config.pop("dropout", None)
        return {
            "split": saved.split,
            "configuration": json.dumps(config),
            "source vocabulary": saved.source_vocabulary,
            "target vocabulary": saved.target_vocabulary,
        }

    first = kind(models[0])
    for number, saved in enumerate(models[1:], start=2):
        for what, value in kind(saved).items():
            if value != first[what]:
                raise ValueError(
                    f"model {number} has another {what} than the first: {value}, "
                    f"expected {first[what]}. Give models that were trained alike."
                )


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
