"""Chapter 4: models on disk, as tensors and text; loading one executes nothing.

A file holds the weights in the safetensors format and, in its header, the
configuration that rebuilds the model, both vocabularies, the task, and the name of the
split it was trained on.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from seq2seq_lib.data.corpora import CorpusName
from seq2seq_lib.data.examples import TaskName
from seq2seq_lib.data.frames import KIND as FRAMES
from seq2seq_lib.data.frames import Frames
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.data.vocabulary import Vocabulary
from seq2seq_lib.device import best_device
from seq2seq_lib.files import write_whole
from seq2seq_lib.interface import EncoderDecoder, ModelConfig
from seq2seq_lib.models.fast import lay_out_for_decoding

MODEL_FORMAT = "seq2seq_lib model 1"
HEADER = "seq2seq_lib"


@dataclass(frozen=True)
class SavedModel:
    """A model with all that is needed to use and to judge it.

    Attributes:
        model: the encoder–decoder.
        source_vocabulary: numbers its sources, or knows the size of their frames.
        target_vocabulary: numbers its targets.
        split: the name of the data split it was trained on.
        task: what it was trained for; that of the split, if it is one of the library.

    Raises:
        ValueError: the split is not one of the library, and no task is given.
    """

    model: EncoderDecoder
    source_vocabulary: Vocabulary | Frames
    target_vocabulary: Vocabulary
    split: str
    # that of the split is filled in below
    task: TaskName = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not self.task:
            object.__setattr__(self, "task", _task_of_split(self.split))


def _task_of_split(split: str) -> TaskName:
    if split not in list(CorpusName):
        raise ValueError(
            f"the split {split!r} is not one of the library, so the task must be given,"
            f" one of {', '.join(TaskName)}: SavedModel(…, task=TaskName.…), or "
            "load_model(path, task=TaskName.…)."
        )
    return CorpusName(split).task


def source_symbols(saved: SavedModel) -> Vocabulary:
    """The source vocabulary of a model that reads symbols.

    Raises:
        ValueError: it reads frames.
    """
    vocabulary = saved.source_vocabulary
    if isinstance(vocabulary, Frames):
        raise ValueError(  # noqa: TRY004, a reader's mistake
            f"this model was trained on {saved.split!r} and reads frames of "
            f"{vocabulary.features} features: expected one that reads text."
        )
    return vocabulary


def save_model(path: Path | str, saved: SavedModel) -> None:
    """Write a model to one file, whole or not at all.

    Raises:
        ValueError: the model has no configuration to rebuild it from.
        OSError: the file cannot be written; what was there before is untouched.
    """
    if saved.model.config is None:
        raise ValueError(
            "this model has no configuration, so a file could not rebuild it: give "
            "EncoderDecoder(…, config=…), or keep the result of weights_of(model)."
        )
    header = {
        "format": MODEL_FORMAT,
        "config": saved.model.config.to_json(),
        "source_vocabulary": saved.source_vocabulary.to_json(),
        "target_vocabulary": saved.target_vocabulary.to_json(),
        "split": saved.split,
        "task": saved.task.value,
    }
    write_tensors(Path(path), weights_of(saved.model), header)


def load_model(
    path: Path | str,
    *,
    device: torch.device | None = None,
    task: TaskName | None = None,
) -> SavedModel:
    """Rebuild a model from its file, ready to be used.

    Args:
        path: what ``save_model`` wrote.
        device: where the weights shall be; the fastest there is by default.
        task: only for a file that does not say it, of a split of your own.

    Raises:
        ValueError: the file is damaged, is not one of ours, or could run code.
    """
    tensors, header = read_tensors(Path(path), MODEL_FORMAT)
    model = ModelConfig.from_json(header["config"]).build()
    load_weights(model, tensors, origin=str(path))
    model.to(device or best_device()).eval()
    lay_out_for_decoding(model)
    return SavedModel(
        model,
        read_source(header["source_vocabulary"]),
        read_vocabulary(header["target_vocabulary"]),
        header["split"],
        task=TaskName(header["task"])
        if "task" in header
        else task or _task_of_split(header["split"]),
    )


def read_source(text: str) -> Vocabulary | Frames:
    """Rebuild what says how a model reads its sources, from its JSON text.

    Raises:
        ValueError: the text holds nothing of the kind.
    """
    if f'"kind": "{FRAMES}"' in text:
        return Frames(json.loads(text)["features"])
    return read_vocabulary(text)


def read_vocabulary(text: str) -> Vocabulary:
    """Rebuild a vocabulary of either kind from its JSON text.

    Raises:
        ValueError: the text holds none.
    """
    kind = SubwordVocabulary if text.lstrip().startswith("{") else Vocabulary
    return kind.from_json(text)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, those shared under two names only once."""
    unique: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        unique.setdefault(id(tensor), (name, tensor.detach()))
    return dict(unique.values())


def load_weights(
    module: nn.Module, tensors: Mapping[str, Tensor], *, origin: str
) -> None:
    """Copy stored tensors into a module of exactly the same names and shapes.

    Raises:
        ValueError: the tensors belong to another model; the module is unchanged.
    """
    own = weights_of(module)
    expected = {name: tuple(tensor.shape) for name, tensor in own.items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if expected != found:
        odd = sorted(n for n in expected | found if expected.get(n) != found.get(n))
        first = odd[0]
        raise ValueError(
            f"{origin} holds the weights of another model: {len(odd)} tensors differ, "
            f"first {first}, which is {found.get(first, 'missing')} in the file and "
            f"{expected.get(first, 'missing')} in the model. Build the model from the "
            "configuration that was saved with the weights."
        )
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]
) -> None:
    """Write tensors and a header of texts in the safetensors format."""
    plain = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    # one entry, because safetensors writes several in random order
    write_whole(path, safetensors.torch.save(plain, {HEADER: json.dumps(dict(header))}))


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what ``write_tensors`` wrote, if its header has this format.

    Raises:
        ValueError: the file is damaged or of another format.
    """
    with path.open("rb") as file:
        start = file.read(9)
    # A pickle begins with its protocol mark, torch.save's archive with a zip's; in a
    # safetensors file eight bytes of length come before the brace of its header.
    if start.startswith((b"\x80", b"PK")) and start[8:] != b"{":
        raise ValueError(
            f"{path} looks like a pickle, which can run code when it is loaded; only "
            "safetensors files are read. Convert it where you trust its origin."
        )
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(HEADER, "{}"))
            # copies, so that the file may be replaced while its tensors are in use
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} ({path.stat().st_size:,} bytes) is damaged or no safetensors file "
            f"({error}): copy it again, or go back to an earlier checkpoint."
        ) from error
    if header.get("format") != kind:
        raise ValueError(
            f"{path} has the format {header.get('format')!r}, expected {kind!r}."
        )
    return tensors, header
