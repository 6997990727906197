"""Publishing trained models: half precision, the mean of several, and a card."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib.files import write_whole
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models.saved import (
    SavedModel,
    load_weights,
    save_model,
    weights_of,
)
from seq2seq_lib.pretrained.loading import Card, checksum
from seq2seq_lib.tasks import TASKS

LARGEST_MODEL = 12_000_000
"""Bytes that the file of one model may take."""
LARGEST_TOTAL = 30_000_000
"""Bytes that the files of all models of the library may take."""


def publish(
    models: Sequence[SavedModel],
    name: str,
    *,
    recipe: str,
    search: Mapping[str, Any],
    also_learned_from: str = "",
    directory: Path,
) -> Card:
    """Store a trained model, or the mean of several, with its card.

    Args:
        models: trained alike: same configuration, vocabularies, task and split.
        name: under which it will be loaded.
        recipe: the name of the recipe that trained them.
        search: the options of the search that was chosen on the development part.
        also_learned_from: what the card should name beside the corpus of the split.
        directory: where weights and card are written.

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
    if size > LARGEST_MODEL:
        raise ValueError(
            f"{name} would take {size:,} bytes: publish at most {LARGEST_MODEL:,}."
        )
    path = directory / f"{name}.safetensors"
    half = SavedModel(
        model.half(),
        first.source_vocabulary,
        first.target_vocabulary,
        first.split,
        task=first.task,
    )
    save_model(path, half)
    about = dataclasses.asdict(TASKS[first.task].about)
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
    """Refuse models that do not share configuration, vocabularies, task and split.

    Dropout may differ: it changes how weights are learned, not what they mean.
    """

    def kind(saved: SavedModel) -> dict[str, object]:
        config = json.loads(saved.model.config.to_json()) if saved.model.config else {}
        config.pop("dropout", None)
        return {
            "task": saved.task,
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
