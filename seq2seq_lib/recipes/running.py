"""Running recipes: from the data to a trained model and its log."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from seq2seq_lib.data import (
    Batches,
    Corpus,
    Example,
    Pair,
    encode_pairs,
    load_corpus,
)
from seq2seq_lib.evaluation import best_outputs
from seq2seq_lib.files import cache_directory, write_whole
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models.ensemble import ensemble
from seq2seq_lib.models.saved import SavedModel, load_weights, save_model, weights_of
from seq2seq_lib.pretrained.loading import open_model
from seq2seq_lib.pretrained.publishing import check_alike
from seq2seq_lib.recipes.distillation import (
    WEIGHT,
    label_by_search,
    label_from_proposals,
    pseudo_labels,
)
from seq2seq_lib.recipes.joint_ngram import JointNGram
from seq2seq_lib.recipes.recipe import Recipe, load_recipe, recipe_names
from seq2seq_lib.recipes.soft_targets import SoftTargets, fingerprint
from seq2seq_lib.search import Search, greedy_search
from seq2seq_lib.tasks import TASKS
from seq2seq_lib.training import History, fit
from seq2seq_lib.training.distributed import map_over_ranks, rank


def run_directory(name: str) -> Path:
    """Where the run of a recipe is kept, unless one says otherwise."""
    return cache_directory() / "runs" / name


def train(
    recipe: Recipe, directory: Path, *, device: torch.device, progress: bool = True
) -> tuple[SavedModel, History]:
    """Run a recipe to its end, from its last checkpoint if there is one.

    Leaves in ``directory`` the checkpoint, ``model.safetensors`` and ``history.json``.
    """
    corpus = load_corpus(recipe.data.corpus)
    torch.manual_seed(recipe.training.seed)
    config = recipe.model_config(corpus.source_vocabulary, corpus.target_vocabulary)
    model = config.build()
    saved = SavedModel(
        model.to(device),
        corpus.source_vocabulary,
        corpus.target_vocabulary,
        corpus.name,
        task=corpus.task,
    )
    if recipe.start:
        _start(saved, recipe.start)
    pairs = encode_pairs(
        recipe.data.training_part(corpus),
        corpus.source_vocabulary,
        corpus.target_vocabulary,
    )
    soft_targets = None
    if recipe.distillation.teachers:
        teacher = _teacher(recipe, saved)
        pairs += _labelled(recipe, corpus, teacher, directory)
        if recipe.training.distillation:
            soft_targets = SoftTargets.kept(directory, teacher.model, pairs)
    words = corpus.dev[: recipe.data.development_words or None]

    search = partial(greedy_search, max_length=recipe.search.max_length)

    def evaluate(_: EncoderDecoder) -> dict[str, float]:
        return measure_together(saved, words, search=search)

    history = fit(
        model,
        Batches(pairs, budget=recipe.data.budget, seed=recipe.data.seed),
        recipe.training,
        teacher=soft_targets,
        evaluate=evaluate,
        directory=directory,
        progress=progress,
    )
    if rank() == 0:
        save_model(directory / "model.safetensors", saved)
        write_whole(directory / "history.json", history.to_json())
    return saved, history


def measure_together(
    saved: SavedModel, examples: Sequence[Example], *, search: Search
) -> dict[str, float]:
    """How good a model is, by the metrics of its task.

    Processes that train together divide the examples among them; all have to call it.

    Args:
        saved: a model with its vocabularies.
        examples: sources with every right answer.
        search: how outputs are found.
    """
    sources = [example.source for example in examples]
    outputs = map_over_ranks(partial(best_outputs, saved, search=search), sources)
    return TASKS[saved.task].score(outputs, examples)


def training_log(recipe: Recipe, directory: Path) -> History:
    """The history of a finished run and, before it, of the run it began from."""
    history = History.from_json((directory / "history.json").read_text("utf-8"))
    if recipe.start not in recipe_names():
        return history
    first = load_recipe(recipe.start)
    return history.after(training_log(first, run_directory(first.name)))


def _start(saved: SavedModel, origin: str) -> None:
    """Give a fresh model stored weights, if they were learned on the same."""
    stored = _stored(origin, saved.model.device)
    try:
        check_alike([saved, stored])
    except ValueError as error:
        raise ValueError(
            f"start={origin!r} is no beginning for this recipe: {error}"
        ) from error
    load_weights(saved.model, weights_of(stored.model), origin=origin)


def _teacher(recipe: Recipe, pupil: SavedModel) -> SavedModel:
    """All teachers of a recipe as one, if they learned on the same split."""
    teachers = []
    for name in recipe.distillation.teachers:
        teachers.append(_stored(name, pupil.model.device))
        try:
            ensemble([pupil, teachers[-1]])
        except ValueError as error:
            raise ValueError(f"{name!r} cannot teach this recipe: {error}") from error
    return ensemble(teachers)


def _labelled(
    recipe: Recipe, corpus: Corpus, teacher: SavedModel, directory: Path
) -> list[Pair]:
    """Pairs of the sources that have no label but a teacher's."""
    sources = [
        source
        for source in recipe.distillation.unlabelled.sources(
            corpus, seed=recipe.distillation.seed
        )
        if not recipe.data.longest or len(source) <= recipe.data.longest
    ]
    if not sources:
        return []
    if recipe.distillation.proposals:
        ngram = JointNGram(directory, recipe.data.training_part(corpus))
        labels = label_from_proposals(teacher, ngram)
        name = fingerprint(teacher.model, sources, ngram.name, WEIGHT)
    else:
        labels = label_by_search(teacher, recipe.search.search())
        name = fingerprint(teacher.model, sources, recipe.search)
    path = directory / f"pseudo-labels-{name}.tsv"
    examples = pseudo_labels(path, sources, labels)
    return encode_pairs(examples, corpus.source_vocabulary, corpus.target_vocabulary)


def _stored(origin: str, device: torch.device) -> SavedModel:
    """A model by the recipe that trained it, its name in the library, or its file."""
    file = origin
    if origin in recipe_names():
        file = str(run_directory(origin) / "model.safetensors")
        if not Path(file).is_file():
            raise ValueError(
                f"the recipe {origin!r} was not run to its end here, {file} is "
                f"missing. Run seq2seq train {origin} first."
            )
    return open_model(file, device=device)
