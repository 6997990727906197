"""What a recipe says, and how it is read from its file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib.configuration import from_mapping
from seq2seq_lib.data import (
    Corpus,
    CorpusName,
    Example,
    Frames,
    Vocabulary,
    source_name,
)
from seq2seq_lib.data.cmudict import place_by_hash
from seq2seq_lib.interface import ModelConfig, SymbolsConfig
from seq2seq_lib.recipes.distillation import Unlabelled
from seq2seq_lib.search import SearchConfig
from seq2seq_lib.tasks import TASKS
from seq2seq_lib.training import TrainingConfig


class Proposals(StrEnum):
    """Models that may propose outputs to a teacher."""

    NONE = ""
    JOINT_NGRAM = "joint-ngram"


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What to learn from.

    Attributes:
        corpus: which data and split.
        budget: positions in a batch.
        seed: of the order of the batches.
        development_words: how many words of the development part each evaluation
            during training looks at; 0 for all.
        share: how much of the training part to learn from; a smaller share is a part
            of every larger one.
        longest: leave out training sources with more symbols; 0 for none.
    """

    corpus: CorpusName
    budget: int = 4096
    seed: int = 0
    development_words: int = 0
    share: float = 1.0
    longest: int = 0

    def __post_init__(self) -> None:
        for name in ("development_words", "longest"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)}: expected 0 or more.")
        if not 0 < self.share <= 1:
            raise ValueError(f"share={self.share}: expected above 0 and at most 1.")

    def training_part(self, corpus: Corpus) -> list[Example]:
        """The examples to learn from.

        Raises:
            ValueError: none is left.
        """
        chosen = [
            example
            for example in corpus.train
            if place_by_hash("share " + source_name(example.source)) < self.share
            and (not self.longest or len(example.source) <= self.longest)
        ]
        if not chosen:
            raise ValueError(
                f"share={self.share} and longest={self.longest} leave none of "
                f"{len(corpus.train):,} examples of {corpus.name}: raise one of them."
            )
        return chosen


@dataclass(frozen=True, kw_only=True)
class DistillationConfig:
    """Whom to learn from, besides the references.

    How much the teachers' probabilities count is ``distillation`` among the options of
    training. A pseudo-label, their output where there is no reference, counts like one.

    Attributes:
        teachers: recipes that were run before, models that come with the library, or
            files; what they teach is the mean of their probabilities.
        unlabelled: sources without a reference, to which the teachers give labels.
        proposals: labels are not searched, but chosen among the outputs of another
            model, whose probabilities count too.
        seed: of the words that are invented.
    """

    teachers: tuple[str, ...] = ()
    unlabelled: Unlabelled = Unlabelled.NONE
    proposals: Proposals = Proposals.NONE
    seed: int = 0

    def __post_init__(self) -> None:
        if self.unlabelled and not self.teachers:
            raise ValueError(
                f"unlabelled={self.unlabelled.value!r} needs teachers to label them."
            )
        if self.proposals and not self.unlabelled:
            raise ValueError(
                f"proposals={self.proposals.value!r} need something unlabelled."
            )
        if self.seed and self.unlabelled is not Unlabelled.WORDS:
            raise ValueError(
                f"seed={self.seed} of the invented words, but none are asked for: "
                "leave it out, or set unlabelled='words'."
            )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that decides how a model comes out.

    Attributes:
        name: of the file.
        data: what to learn from.
        model: the model's name and sizes; the vocabularies' sizes come from the data.
        training: how to learn.
        search: how to evaluate.
        distillation: whom else to learn from.
        start: whose weights to begin from: a recipe that was run before, a model that
            comes with the library, or a file. Kind and split must be the same; dropout
            may differ. Empty to begin from random weights.
    """

    name: str
    data: DataConfig
    model: Mapping[str, Any]
    training: TrainingConfig
    search: SearchConfig = field(default_factory=SearchConfig)
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    start: str = ""

    def __post_init__(self) -> None:
        # a wrong entry is found before the data is read
        with torch.device("meta"):
            kind = ModelConfig.models.get(self.model.get("model", ""), SymbolsConfig)
            reads_symbols = issubclass(kind, SymbolsConfig)
            source = Vocabulary("a") if reads_symbols else Frames(1)
            self.model_config(source, Vocabulary("a")).build()
        share, teachers = self.training.distillation, self.distillation.teachers
        if share and not teachers:
            raise ValueError(f"distillation={share} needs teachers.")
        if teachers and not share and not self.distillation.unlabelled:
            raise ValueError(
                f"teachers={list(teachers)} teach nothing: expected distillation above "
                "0 among the options of training, or something unlabelled."
            )
        monitor, task = self.training.monitor, TASKS[self.data.corpus.task]
        if monitor not in ("", *task.metrics):
            raise ValueError(
                f"monitor={monitor!r}: a recipe measures {' and '.join(task.metrics)} "
                f"on {self.data.corpus}."
            )
        if self.distillation.unlabelled and not task.words:
            raise ValueError(
                f"unlabelled={self.distillation.unlabelled.value!r} with "
                f"{self.data.corpus}: these are words, and its sources are sentences."
            )
        higher = task.higher_is_better
        if monitor and self.training.higher_is_better is not higher:
            raise ValueError(
                f"higher_is_better={self.training.higher_is_better} with monitor="
                f"{monitor!r}: {'higher' if higher else 'lower'} is better."
            )

    def learned_from(self) -> str:
        """What a model's card says of teachers, also of those of a recipe before it.

        It is empty without them.
        """
        given = self.distillation
        teachers = ", ".join(given.teachers)
        parts = []
        if self.start in recipe_names():
            parts.append(load_recipe(self.start).learned_from())
        if self.training.distillation:
            parts.append(f"Also what models of these recipes believe: {teachers}")
        if given.unlabelled:
            words = (
                "Surnames of the United States census of 1990 (from the package names, "
                "MIT)"
            )
            if given.unlabelled is Unlabelled.WORDS:
                words += (
                    ", words of the English Wikipedia (wordninja, MIT), and invented "
                    "words that imitate the training words"
                )
            if words in "".join(parts):  # of the recipes before
                words = "Other such words"
            parts.append(
                f"{words}, without pronunciation, as pronounced by {teachers}"
                f"{' and' if given.proposals else ''}"
            )
        if given.proposals:
            parts[-1] += " a joint n-gram model of the same training words"
        return ". ".join(filter(None, parts))

    def model_config(
        self, source: Vocabulary | Frames, target: Vocabulary
    ) -> ModelConfig:
        """The model's configuration for such sources and targets."""
        sizes = {**source.sizes, "target_symbols": len(target)}
        return ModelConfig.from_mapping({**self.model, **sizes})


def recipe_names() -> list[str]:
    """The recipes that come with the library."""
    files = resources.files("seq2seq_lib.recipes").iterdir()
    return sorted(
        f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")
    )


def load_recipe(name: str) -> Recipe:
    """Read a recipe by its name or from a TOML file.

    Raises:
        ValueError: there is no such recipe, or it has an unknown or wrong entry.
    """
    if name in recipe_names():
        text = (
            resources.files("seq2seq_lib.recipes")
            .joinpath(f"{name}.toml")
            .read_text("utf-8")
        )
    elif Path(name).is_file():
        text = Path(name).read_text("utf-8")
    else:
        raise ValueError(
            f"no recipe {name!r}: expected a TOML file, or one of "
            f"{', '.join(recipe_names())}."
        )
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"recipe {name!r}: {error}") from error
    return recipe_of(Path(name).stem, tables)


def recipe_of(name: str, tables: dict[str, Any]) -> Recipe:
    """Build a recipe from the tables of its file, which are used up.

    Raises:
        ValueError: there is an unknown or wrong entry, or one is missing.
    """
    try:
        return Recipe(
            name=name,
            data=from_mapping(DataConfig, tables.pop("data")),
            model=tables.pop("model"),
            training=from_mapping(TrainingConfig, tables.pop("training")),
            search=from_mapping(SearchConfig, tables.pop("search", {})),
            distillation=from_mapping(
                DistillationConfig, tables.pop("distillation", {})
            ),
            start=_file_name(tables.pop("start", "")),
            **tables,
        )
    except KeyError as error:
        raise ValueError(f"recipe {name!r} has no table [{error.args[0]}].") from error
    except TypeError as error:
        raise ValueError(
            f"recipe {name!r} has unknown tables {sorted(tables)}: expected data, "
            "model, training, search and distillation, and above them at most start."
        ) from error
    except ValueError as error:
        raise ValueError(f"recipe {name!r}: {error}") from error


def _file_name(start: object) -> str:
    if type(start) is not str:
        raise ValueError(f"start={start!r}: expected the name of a model or file.")
    return start
