"""The words of the course for its classes: their arguments, in this order."""

import inspect

import pytest

from seq2seq_lib import models

# what stands behind the star is given by keyword
CONSTRUCTORS = {
    "RNNEncoder": "symbols width * kind layers bidirectional pooling dropout",
    "ConvEncoder": "symbols width * layers kernel pooling dropout",
    "RNNDecoder": "symbols width * encoder_width kind layers dropout",
    "AttentionDecoder": "symbols width * encoder_width scores kind layers dropout",
    "Seq2Seq": "config",
    "DotAttention": "width",
    "SelfAttention": "width",
    "MultiHeadAttention": "width heads * source_width dropout rotary",
    "LayerNorm": "width epsilon",
    "Residual": "width * order norm dropout",
    "Sinusoids": "width longest",
    "LearnedPositions": "width longest",
    "Rotary": "width longest",
    "FeedForward": "width hidden * dropout",
    "Embedding": "symbols width positions * dropout",
    "EncoderBlock": "width heads hidden * order norm dropout inner_dropout rotary",
    "DecoderBlock": (
        "width heads hidden * encoder_width order norm dropout inner_dropout rotary"
    ),
    "TransformerEncoder": "symbols config",
    "TransformerDecoder": "config * encoder_width",
    "CachedDecoder": "config * encoder_width",
    "Transformer": "config",
}
FORWARDS = {
    "DotAttention": "query key value mask",
    "SelfAttention": "x mask",
    "MultiHeadAttention": "x source mask * causal weights",
    "Residual": "x sublayer mask",
    "EncoderBlock": "x mask * weights",
    "DecoderBlock": "x source source_mask mask * weights",
}


def names(function):
    """The parameters after self, with a star before the first keyword-only one."""
    _, *parameters = inspect.signature(function).parameters.values()
    found = []
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        found.append(parameter.name)
    return " ".join(found)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_class_is_built_with_the_words_of_the_course(name):
    assert names(getattr(models, name).__init__) == CONSTRUCTORS[name]


@pytest.mark.parametrize("name", FORWARDS)
def test_a_class_is_called_with_the_words_of_the_course(name):
    assert names(getattr(models, name).forward) == FORWARDS[name]


def test_rotate_is_a_function_with_a_start():
    assert str(inspect.signature(models.rotate)).startswith("(x:")
    assert list(inspect.signature(models.rotate).parameters) == ["x", "start"]


@pytest.mark.parametrize("name", models.__all__)
def test_every_name_has_one_home(name):
    home = getattr(models, name).__module__
    assert home.startswith("seq2seq_lib.models.")
