"""The command ``seq2seq export``."""

import argparse
import sys
from pathlib import Path

from seq2seq_lib.pretrained import open_model
from seq2seq_lib.pretrained.export import Quantization, export_ctranslate2, export_onnx


def export(command: argparse.ArgumentParser) -> None:
    """Write a trained Transformer for another engine."""
    command.description = (
        "Write a trained Transformer with its vocabularies in the format of "
        "CTranslate2, or as ONNX graphs of the encoder and of one decoder step."
    )
    command.add_argument("model", help="the name of a model, or a file")
    command.add_argument("directory", type=Path, help="where to; made by the export")
    command.add_argument("--to", choices=("ctranslate2", "onnx"), required=True)
    command.add_argument(
        "--quantization",
        choices=[kind.value for kind in Quantization],
        default=Quantization.FLOAT32.value,
        help="int8 is smaller and faster, but rounds; for ctranslate2 only",
    )
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    quantization = Quantization(options.quantization)
    if options.to == "onnx" and quantization is not Quantization.FLOAT32:
        raise ValueError(
            f"--quantization {quantization} with --to onnx: these graphs are written "
            "in float32 only. Leave it out, or use --to ctranslate2."
        )
    saved = open_model(options.model)
    if options.to == "onnx":
        export_onnx(saved, options.directory)
    else:
        export_ctranslate2(saved, options.directory, quantization=quantization)
    print(f"{options.model} written to {options.directory}", file=sys.stderr)
    return 0
