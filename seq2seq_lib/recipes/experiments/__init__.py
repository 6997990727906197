"""Experiments: one question, a recipe for every answer, several seeds of each.

An experiment is a TOML file: a recipe, and below it ``variants`` that each change some
of its entries. Every run of a variant with a seed is stored on its own, so that the
chapters can draw error bars, and an experiment can be finished on another day.
"""

import copy
import dataclasses
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib.data import load_corpus
from seq2seq_lib.evaluation import best_outputs
from seq2seq_lib.files import write_whole
from seq2seq_lib.pretrained.stored_results import RESULTS
from seq2seq_lib.recipes.recipe import Recipe, recipe_of
from seq2seq_lib.recipes.running import train
from seq2seq_lib.tasks import TASKS

RECIPES = Path(str(resources.files("seq2seq_lib.recipes"))) / "experiments"
STORED = RESULTS / "experiments"
"""Where the runs are that the book draws."""


@dataclass(frozen=True)
class Experiment:
    """A question and the recipes that are compared to answer it.

    Attributes:
        name: of the file.
        question: in a sentence.
        part: what the runs are scored on, ``dev`` or ``test``.
        variants: a recipe for each thing compared.
    """

    name: str
    question: str
    part: str
    variants: Mapping[str, Recipe]

    def recipe(self, variant: str, seed: int) -> Recipe:
        """The recipe of one run: the seed decides weights, dropout and batches.

        Raises:
            ValueError: there is no such variant.
        """
        if variant not in self.variants:
            raise ValueError(
                f"{self.name} has no variant {variant!r}: expected one of "
                f"{', '.join(self.variants)}."
            )
        chosen = self.variants[variant]
        return dataclasses.replace(
            chosen,
            data=dataclasses.replace(chosen.data, seed=seed),
            training=dataclasses.replace(chosen.training, seed=seed),
        )


def experiment_names() -> list[str]:
    """The experiments that come with the library."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def load_experiment(name: str) -> Experiment:
    """Read an experiment by its name or from a TOML file.

    Raises:
        ValueError: there is no such experiment, or it has an unknown or wrong entry.
    """
    path = RECIPES / f"{name}.toml" if name in experiment_names() else Path(name)
    if not path.is_file():
        raise ValueError(
            f"no experiment {name!r}: expected a TOML file, or one of "
            f"{', '.join(experiment_names())}."
        )
    tables = tomllib.loads(path.read_text("utf-8"))
    question, part = tables.pop("question", ""), tables.pop("part", "dev")
    changes = tables.pop("variants", {})
    if not question or part not in ("dev", "test") or not changes:
        raise ValueError(
            f"experiment {name!r} has question={question!r}, part={part!r} and "
            f"{len(changes)} variants: expected a question, dev or test, and at least "
            "one table [variants.NAME]."
        )
    return Experiment(
        path.stem,
        question,
        part,
        {
            variant: recipe_of(f"{path.stem}-{variant}", _changed(tables, change))
            for variant, change in changes.items()
        },
    )


def _changed(tables: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe with some entries replaced, table by table."""
    changed = copy.deepcopy(dict(tables))
    for table, entries in change.items():
        changed[table] = {**changed.get(table, {}), **entries}
    return changed


def run(
    experiment: Experiment,
    variant: str,
    seed: int,
    directory: Path,
    *,
    device: torch.device,
    progress: bool = True,
) -> dict[str, Any]:
    """Train one variant with one seed, or go on with it, and score it.

    Args:
        experiment: which.
        variant: which of its recipes.
        seed: of everything random.
        directory: where the run is kept.
        device: where to train.
        progress: draw a progress bar.

    Returns:
        what is stored about the run: the metrics of its task, counts by length from
        which they can be computed, and how the training went.
    """
    recipe = experiment.recipe(variant, seed)
    saved, history = train(recipe, directory, device=device, progress=progress)
    examples = getattr(load_corpus(recipe.data.corpus), experiment.part)
    sources = [example.source for example in examples]
    outputs = best_outputs(saved, sources, search=recipe.search.search())
    task, last = TASKS[saved.task], history.rows[-1]
    return {
        "variant": variant,
        "seed": seed,
        "weights": sum(p.numel() for p in saved.model.parameters()),
        "steps": last.step,
        "seconds": round(last.seconds),
        **task.score(outputs, examples),
        "by_length": task.counts_by_length(outputs, examples),
        "curve": [
            {"step": row.step, "loss": round(row.loss, 4), **row.metrics}
            for row in history.rows
        ],
    }


def stored_runs(name: str, *, directory: Path = STORED) -> list[dict[str, Any]]:
    """The runs of an experiment that were stored so far, seeds of a variant together.

    Raises:
        ValueError: none is stored.
    """
    path = directory / f"{name}.json"
    if not path.is_file():
        raise ValueError(
            f"no results of {name!r} are in {directory}: run seq2seq experiment {name} "
            "--store DIRECTORY."
        )
    runs: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["runs"]
    return runs


def store_run(
    experiment: Experiment, done: Mapping[str, Any], *, directory: Path
) -> Path:
    """Add a run to the stored ones, in place of an earlier one of the same seed."""
    path = directory / f"{experiment.name}.json"
    runs = [dict(done)]
    if path.is_file():
        same = (done["variant"], done["seed"])
        earlier = stored_runs(experiment.name, directory=directory)
        runs += [one for one in earlier if (one["variant"], one["seed"]) != same]
    order = list(experiment.variants)
    # runs of variants that are no longer part of the experiment are dropped
    runs = [one for one in runs if one["variant"] in order]
    runs.sort(key=lambda one: (order.index(one["variant"]), one["seed"]))
    content = {"question": experiment.question, "part": experiment.part, "runs": runs}
    write_whole(path, json.dumps(content, indent=1) + "\n")
    return path


def missing_runs(
    experiment: Experiment, seeds: Sequence[int], *, directory: Path | None = STORED
) -> list[tuple[str, int]]:
    """The variants and seeds that are not stored yet, a seed of all variants first."""
    stored: set[tuple[str, int]] = set()
    if directory and (directory / f"{experiment.name}.json").is_file():
        runs = stored_runs(experiment.name, directory=directory)
        stored = {(one["variant"], one["seed"]) for one in runs}
    wanted = ((variant, seed) for seed in seeds for variant in experiment.variants)
    return [one for one in wanted if one not in stored]
