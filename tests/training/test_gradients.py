import pytest
import torch
from tiny_models import CONFIGS, build, example_batch

from seq2seq_lib.models.positional import sinusoids
from seq2seq_lib.plotting import heat_map, plot_lines
from seq2seq_lib.training import cross_entropy, gradient_norms


def test_norms_are_the_lengths_of_the_gradients():
    model, batch = build(CONFIGS["transformer"]), example_batch()
    cross_entropy(model(batch), batch.target, batch.target_mask).backward()
    parts = {f"block {n}": block for n, block in enumerate(model.encoder.blocks)}
    norms = gradient_norms(parts)
    for name, block in parts.items():
        gradient = torch.cat([p.grad.flatten() for p in block.parameters()])
        assert norms[name] == pytest.approx(gradient.norm().item())
    ax = plot_lines(
        {"pre-norm": list(enumerate(norms.values()))},
        x_label="block",
        y_label="gradient norm",
        logarithmic=True,
    )
    assert ax.get_yscale() == "log"


def test_a_part_without_gradient_is_named():
    model = build(CONFIGS["transformer"])
    with pytest.raises(ValueError, match=r"'encoder' has no gradient: call loss"):
        gradient_norms({"encoder": model.encoder})


def test_positional_encodings_can_be_drawn():
    ax = heat_map(
        sinusoids(60, 32), signed=True, x_label="feature", y_label="position", title="x"
    )
    assert ax.get_xlabel() == "feature"
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert 2 < len(labels) <= 60
