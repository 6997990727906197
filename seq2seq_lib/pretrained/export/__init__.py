"""Trained models for other engines: CTranslate2 and ONNX."""

from seq2seq_lib.pretrained.export.ctranslate2 import (
    CTranslate2Model,
    Quantization,
    export_ctranslate2,
)
from seq2seq_lib.pretrained.export.onnx import export_onnx, load_onnx

__all__ = [
    "CTranslate2Model",
    "Quantization",
    "export_ctranslate2",
    "export_onnx",
    "load_onnx",
]
