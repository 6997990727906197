"""What is drawn, not how many pixels of it."""

import inspect
import math
import statistics
from itertools import pairwise

import hypothesis.strategies as st
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given
from matplotlib.colors import to_rgba
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, PathPatch
from torch.testing import assert_close

from seq2seq_lib import plotting
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.data.vocabulary import EOS, Vocabulary
from seq2seq_lib.plotting import (
    GREEN,
    PALETTE,
    VERMILION,
    Arrow,
    Box,
    Interval,
    Spread,
    heat_map,
    plot_bars,
    plot_batch,
    plot_beam_tree,
    plot_boxes,
    plot_dots,
    plot_histogram,
    plot_history,
    plot_lines,
    plot_mask,
    use_style,
)
from seq2seq_lib.plotting.style import CYCLE, PAGE, letters_that_fit
from seq2seq_lib.plotting.trees import MOST_NODES, ROOT, _places, _spread_out
from seq2seq_lib.search import Node, Trace
from seq2seq_lib.training.history import History, Row

mpl.use("agg")

LETTERS = Vocabulary("aceghiknopt")
SOUNDS = Vocabulary(["AE", "AY", "F", "K", "N", "OW", "T"])
WORDS = {"knight": "N AY T", "cat": "K AE T", "phone": "F OW N"}
BATCH = Batch.from_pairs(
    [
        Pair(LETTERS.encode(word), SOUNDS.encode(sounds.split()))
        for word, sounds in WORDS.items()
    ]
)
CAUSAL = torch.ones(4, 4, dtype=torch.bool).tril()
WEIGHTS = torch.linspace(0, 1, 28).view(4, 7)
SOURCE = [*"knight", "<eos>"]
TARGET = ["N", "AY", "T", "<eos>"]
ERRORS = {
    "GRU": [(4, [0.1, 0.2, 0.6]), (8, [0.3, 0.5, 0.4])],
    "LSTM": [(4, [0.2, 0.2, 0.2]), (8, [0.1, 0.4, 0.7])],
}
HISTORY = History(
    [
        Row(100, 1, 2.5, 1e-3, 1.0, {"per": 0.9}),
        Row(200, 1, 1.5, 1e-3, 2.0, {"per": 0.4}),
        Row(300, 2, 1.0, 1e-3, 3.0, {"per": 0.6, "wer": 0.8}),
    ],
    best=1,
)
# N and K go on; N AY and K AE end, the second with the better score; N alone would
# have had a still better one, but its end was discarded
NODES = [
    Node(ROOT, SOUNDS.encode(["N"])[0], -0.5, -0.5, kept=True),
    Node(ROOT, SOUNDS.encode(["K"])[0], -0.9, -0.9, kept=True),
    Node(ROOT, SOUNDS.encode(["F"])[0], -3.0, -3.0, kept=False),
    Node(0, SOUNDS.encode(["AY"])[0], -1.5, -0.9, kept=True),
    Node(1, SOUNDS.encode(["AE"])[0], -1.1, -0.7, kept=True),
    Node(0, EOS, -2.5, -0.4, kept=False),
    Node(1, SOUNDS.encode(["T"])[0], -math.inf, -math.inf, kept=False),
    Node(3, EOS, -1.9, -0.8, kept=True),
    Node(4, EOS, -1.2, -0.5, kept=True),
]
TRACE = Trace(NODES, candidates=40, attention=None)
BOXES = {
    "encoder": Box("encoder", 0, 0),
    "memory": Box("memory", 2, 0, colour=GREEN),
    "decoder": Box("decoder\nstep", 4, 0, colour=VERMILION),
}
ARROWS = [Arrow("encoder", "memory"), Arrow("memory", "decoder", "reads", bend=0.2)]
DOTS = {"ours": Interval(0.3, 0.2, 0.35), "a paper": 0.25, "another": Interval(1, 1, 1)}
GROUPS = {"a paper": "published", "another": "published", "ours": "measured"}

DRAWINGS = {
    heat_map: lambda **o: heat_map(WEIGHTS, rows=TARGET, columns=SOURCE, **o),
    plot_bars: lambda **o: plot_bars(
        {"shuffled": 0.4, "buckets": 0.02}, value_label="share", name_label="order", **o
    ),
    plot_batch: lambda **o: plot_batch(BATCH, LETTERS, SOUNDS, **o),
    plot_beam_tree: lambda **o: plot_beam_tree(TRACE, SOUNDS, **o),
    plot_boxes: lambda **o: plot_boxes(BOXES, ARROWS, **o),
    plot_dots: lambda **o: plot_dots(
        DOTS, groups=GROUPS, value_label="WER", name_label="system", **o
    ),
    plot_histogram: lambda **o: plot_histogram(
        {"letters": [3, 4, 4], "sounds": [2, 3]}, x_label="length", **o
    ),
    plot_history: lambda **o: plot_history({"GRU": HISTORY}, **o),
    plot_lines: lambda **o: plot_lines(ERRORS, x_label="length", y_label="PER", **o),
    plot_mask: lambda **o: plot_mask(CAUSAL, rows=TARGET, columns=TARGET, **o),
}
every_drawing = pytest.mark.parametrize(
    "draw", DRAWINGS.values(), ids=[function.__name__ for function in DRAWINGS]
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def x_ticks(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


def y_ticks(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def hatched(ax):
    return [patch for patch in ax.patches if patch.get_hatch()]


# All figures


def test_every_function_is_in_the_table_above():
    public = {getattr(plotting, name) for name in plotting.__all__}
    functions = {f for f in public if inspect.isfunction(inspect.unwrap(f))}
    assert functions - {use_style} == set(DRAWINGS)


@every_drawing
def test_axes_given_are_drawn_on_and_returned(draw):
    _, (ax, other) = plt.subplots(1, 2)
    assert draw(ax=ax) is ax
    assert ax.has_data() or ax.texts
    assert not other.has_data()
    assert not other.texts
    assert len(plt.get_fignums()) == 1


@every_drawing
def test_a_figure_is_made_where_none_is_given(draw):
    ax = draw()
    assert plt.get_fignums() == [ax.figure.number]
    assert ax.figure.get_size_inches()[0] <= PAGE + 1e-9


@every_drawing
def test_axes_are_labelled_or_hidden(draw):
    ax = draw()
    for axis in (ax.xaxis, ax.yaxis):
        hidden = not (ax.axison and axis.get_visible())
        assert hidden or axis.get_label_text()


@every_drawing
def test_a_long_title_is_kept_whole_and_broken_into_lines(draw):
    finding = "The longer the word, the less a summary of fixed size can hold of it"
    title = draw(title=finding).get_title(loc="left")
    assert title.replace("\n", " ") == finding
    small = plt.subplots(1, 3)[1][0]
    assert "\n" in draw(title=finding, ax=small).get_title(loc="left")


@every_drawing
def test_nothing_reaches_beyond_the_figure(draw):
    figure = draw(title="A finding").figure
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert drawn.x0 > -0.02
    assert drawn.y0 > -0.02
    assert drawn.x1 < width + 0.02
    assert drawn.y1 < height + 0.02


@every_drawing
def test_figures_are_the_same_on_dark_pages(draw):
    light = draw(title="A finding")
    before = dict(mpl.rcParams)
    with plt.style.context("dark_background"):
        dark = draw(title="A finding")
    assert dict(mpl.rcParams) == before  # the style has not leaked
    for ax in (light, dark):
        assert ax.figure.get_facecolor() == to_rgba("white")
    look = [
        [
            [to_rgba(patch.get_facecolor()) for patch in ax.patches],
            [to_rgba(line.get_color()) for line in ax.lines],
            [text.get_color() for text in ax.findobj(mpl.text.Text)],
        ]
        for ax in (light, dark)
    ]
    assert look[0] == look[1]


def test_use_style_reaches_figures_of_the_readers_own():
    with plt.rc_context():
        use_style()
        figure, ax = plt.subplots()
        assert figure.dpi == 150
        assert ax.plot([1, 2])[0].get_color() == PALETTE[0]


def test_curves_differ_without_their_colours():
    looks = {(style["linestyle"], style["marker"]) for style in CYCLE}
    assert len(looks) == len(PALETTE) == len(set(PALETTE))


@pytest.mark.parametrize("text", ["N", "<eos>", "▁Menschen", "$$", "", "WWWWWWWW"])
@pytest.mark.parametrize("room", [10, 30, 100])
def test_letters_that_fit_are_no_wider_than_the_room(text, room):
    size = letters_that_fit([text], room, largest=10)
    assert 5 <= size <= 10
    figure = plt.figure(dpi=720)
    drawn = figure.text(0, 0, text, size=size, parse_math=False)
    width = drawn.get_window_extent(figure.canvas.get_renderer()).width / 10
    assert size == 5 or width < room * 1.02
    assert size == 10 or width > room * 0.98  # and no smaller than needed


# Batches, masks and matrices


def test_a_batch_shows_its_symbols_and_hatches_its_padding():
    ax = plot_batch(BATCH, LETTERS)
    shown = [symbol for word in WORDS for symbol in (*word, "<eos>")]
    assert texts(ax) == shown
    assert len(hatched(ax)) == (~BATCH.source_mask).sum() == 4
    assert len(ax.patches) == BATCH.source.numel()
    assert x_ticks(ax) == [str(i) for i in range(7)]
    assert y_ticks(ax) == ["0", "1", "2"]


def test_padding_is_hatched_where_the_mask_says_so():
    ax = plot_batch(BATCH, LETTERS)
    cells = {(int(p.get_y()), int(p.get_x())) for p in hatched(ax)}
    assert cells == {tuple(cell) for cell in (~BATCH.source_mask).nonzero().tolist()}


def test_with_a_target_vocabulary_all_three_tensors_are_drawn():
    ax = plot_batch(BATCH, LETTERS, SOUNDS)
    blocks = texts(ax)
    assert [t for t in blocks if t in {"source", "decoder input", "target"}] == [
        "source",
        "decoder input",
        "target",
    ]
    assert blocks.count("<bos>") == 3
    assert blocks.count("<eos>") == 6
    assert len(hatched(ax)) == (~BATCH.source_mask).sum() + 2 * (
        (~BATCH.target_mask).sum()
    )


def test_symbols_that_look_like_formulas_are_shown_as_they_are():
    money = Vocabulary(["$$", "$x^$"])
    ax = plot_batch(Batch.from_pairs([Pair([4, 5], [4])]), money)
    ax.figure.draw_without_rendering()
    assert texts(ax)[:2] == ["$$", "$x^$"]


def test_a_mask_is_hatched_where_nothing_may_look():
    ax = plot_mask(CAUSAL, rows=TARGET, columns=SOURCE[:4])
    hidden = {(int(p.get_y()), int(p.get_x())) for p in hatched(ax)}
    assert hidden == {(r, c) for r in range(4) for c in range(4) if c > r}
    assert len(ax.patches) == 16
    assert y_ticks(ax) == TARGET
    assert x_ticks(ax) == SOURCE[:4]


def test_the_first_row_is_on_top():
    for ax in (plot_mask(CAUSAL), heat_map(WEIGHTS), plot_batch(BATCH, LETTERS)):
        bottom, top = ax.get_ylim()
        assert bottom > top


def test_a_heat_map_has_symbols_on_both_axes_and_the_values_in_its_cells():
    ax = heat_map(WEIGHTS, rows=TARGET, columns=SOURCE, value_label="attention")
    assert y_ticks(ax) == TARGET
    assert x_ticks(ax) == SOURCE
    [mesh] = ax.collections
    assert_close(torch.tensor(mesh.get_array().reshape(4, 7)), WEIGHTS.double())
    assert [a.get_ylabel() for a in ax.figure.axes if a is not ax] == ["attention"]


def test_ticks_stand_in_the_middle_of_their_cells():
    ax = heat_map(WEIGHTS, rows=TARGET, columns=SOURCE)
    assert ax.get_xticks().tolist() == [c + 0.5 for c in range(7)]
    assert ax.get_yticks().tolist() == [r + 0.5 for r in range(4)]


@pytest.mark.parametrize("size", [1, 16, 17, 128, 5000])
def test_without_symbols_cells_are_numbered_and_few_of_them_labelled(size):
    ax = heat_map(torch.ones(1, size))
    ticks = x_ticks(ax)
    assert 1 <= len(ticks) <= 16
    assert [float(t) + 0.5 for t in ticks] == ax.get_xticks().tolist()


def test_long_symbols_are_turned_but_letters_beside_a_special_one_are_not():
    narrow = plt.subplots(1, 3)[1]
    words = ["Mann", "Leiter", "<eos>", "Fenster", "Hemd", "auf", "und"]
    heat_map(WEIGHTS, columns=words, ax=narrow[0])
    heat_map(WEIGHTS, columns=SOURCE, ax=narrow[1])
    turned = [
        [label.get_rotation() == 90 for label in ax.get_xticklabels()] for ax in narrow
    ]
    assert turned[0] == [True] * 7
    assert turned[1] == [False] * 6 + [True]


def test_highlighted_cells_are_framed():
    cells = [(0, 0), (0, 1), (3, 6)]
    ax = heat_map(WEIGHTS, highlight=cells)
    framed = [(int(p.get_y()), int(p.get_x())) for p in ax.patches]
    assert framed == cells
    assert all(patch.get_edgecolor() == to_rgba(VERMILION) for patch in ax.patches)


def test_numbers_are_printed_and_readable_on_their_cells():
    ax = heat_map(WEIGHTS, number_format=".1f")
    assert texts(ax) == [f"{value:.1f}" for value in WEIGHTS.flatten().tolist()]
    assert [ax.texts[i].get_color() for i in (0, -1)] == ["#222222", "white"]
    assert texts(heat_map(-torch.ones(1, 1), number_format=".1f")) == ["−1.0"]


def test_colours_span_the_limits():
    def limits(*args, **options):
        [mesh] = heat_map(*args, **options).collections
        return mesh.get_clim()

    assert limits(torch.tensor([[0.25, 0.75]])) == (0.0, 0.75)
    assert limits(torch.tensor([[-3, -1]])) == (-3.0, -1.0)
    assert limits(torch.tensor([[-3, 1]]), signed=True) == (-3.0, 3.0)
    assert limits(torch.tensor([[-1, 3]]), signed=True) == (-3.0, 3.0)
    assert limits(torch.tensor([[0.2, 0.6]]), limits=(0.0, 1.0)) == (0.0, 1.0)


def test_what_is_not_finite_stays_blank():
    values = torch.tensor([[0.5, -torch.inf], [torch.nan, 1.0]])
    ax = heat_map(values, number_format=".1f")
    [mesh] = ax.collections
    assert np.ma.getmaskarray(mesh.get_array()).reshape(2, 2).tolist() == [
        [False, True],
        [True, False],
    ]
    assert texts(ax) == ["0.5", "1.0"]
    with pytest.raises(ValueError, match="nothing to draw"):
        heat_map(torch.full((2, 2), torch.nan))


def test_tensors_may_need_gradients_and_have_any_kind_of_number(device):
    heat_map(torch.rand(2, 2, device=device, requires_grad=True))
    heat_map(torch.rand(2, 2, device=device).bfloat16())
    heat_map(torch.zeros(2, 2, dtype=torch.long, device=device))
    plot_mask(torch.ones(2, 2, dtype=torch.bool, device=device))
    plot_batch(BATCH.to(device), LETTERS, SOUNDS)


@pytest.mark.parametrize("draw, values", [(heat_map, WEIGHTS), (plot_mask, CAUSAL)])
@pytest.mark.parametrize("side, axis", [("rows", 0), ("columns", 1)])
def test_the_wrong_number_of_symbols_is_refused(draw, values, side, axis):
    with pytest.raises(ValueError, match=f"6 {side} labels for {values.shape[axis]}"):
        draw(values, **{side: "knight"})
    assert not plt.get_fignums()  # and no empty figure is left behind


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0, 3), (3, 0)])
def test_other_than_two_axes_are_refused(shape):
    # without the checker of shapes, as a reader calls it
    with pytest.raises(ValueError, match=r"the shape is .* expected two axes"):
        inspect.unwrap(heat_map)(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"the shape is .* expected two axes"):
        inspect.unwrap(plot_mask)(torch.zeros(shape, dtype=torch.bool))


@pytest.mark.parametrize("cell", [(4, 0), (0, 7), (-1, 0)])
def test_a_frame_outside_of_the_matrix_is_refused(cell):
    with pytest.raises(ValueError, match="the matrix has 4 rows and 7 columns"):
        heat_map(WEIGHTS, highlight=[cell])


# Curves, bars and histograms


def error_bars(ax):
    """For every curve with error bars: x, low and high of each."""
    return [
        [(x, low, high) for (x, low), (_, high) in container[2][0].get_segments()]
        for container in ax.containers
    ]


def test_error_bars_span_the_seeds():
    ax = plot_lines(ERRORS, x_label="length", y_label="PER")
    for bars, points in zip(error_bars(ax), ERRORS.values(), strict=True):
        expected = [(x, min(values), max(values)) for x, values in points]
        assert np.allclose(bars, expected)
    assert ax.get_legend().get_title().get_text() == Spread.RANGE.value


def test_or_one_standard_error():
    ax = plot_lines(
        ERRORS, x_label="length", y_label="PER", spread=Spread.STANDARD_ERROR
    )
    for bars, points in zip(error_bars(ax), ERRORS.values(), strict=True):
        for (_, low, high), (_, values) in zip(bars, points, strict=True):
            error = statistics.stdev(values) / math.sqrt(3)
            assert low == pytest.approx(statistics.mean(values) - error)
            assert high == pytest.approx(statistics.mean(values) + error)


def test_or_the_middle_half():
    ax = plot_lines(ERRORS, x_label="length", y_label="PER", spread=Spread.QUARTILES)
    for bars, points in zip(error_bars(ax), ERRORS.values(), strict=True):
        for (_, low, high), (_, values) in zip(bars, points, strict=True):
            expected = statistics.quantiles(values, n=4)
            assert [low, high] == pytest.approx([expected[0], expected[-1]])


def test_bands_span_what_error_bars_would():
    ax = plot_lines(ERRORS, x_label="length", y_label="PER", band=True)
    assert not ax.containers
    for band, points in zip(ax.collections, ERRORS.values(), strict=True):
        corners = {tuple(corner) for corner in band.get_paths()[0].vertices}
        for x, values in points:
            assert {(x, min(values)), (x, max(values))} <= corners


def test_lines_run_through_the_means_and_are_named():
    ax = plot_lines(ERRORS, x_label="length", y_label="PER")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == list(ERRORS)
    for container, points in zip(ax.containers, ERRORS.values(), strict=True):
        line = container[0]
        assert line.get_xdata().tolist() == [x for x, _ in points]
        means = [statistics.mean(values) for _, values in points]
        assert line.get_ydata().tolist() == pytest.approx(means)
    assert len({c[0].get_linestyle() for c in ax.containers}) == 2
    assert len({c[0].get_marker() for c in ax.containers}) == 2


def test_the_legend_keeps_the_order_of_the_curves():
    curves = {"seeds": [(1, [0.1, 0.2])], "one": [(1, 0.3)], "more": [(1, [0.4, 0.5])]}
    ax = plot_lines(curves, x_label="x", y_label="y")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == list(curves)


def test_single_values_have_no_error_bars_and_nothing_is_said_of_them():
    ax = plot_lines({"one": {4: 0.1, 8: 0.2}.items()}, x_label="x", y_label="y")
    assert not ax.containers
    assert ax.get_legend().get_title().get_text() == ""


def test_ticks_are_whole_numbers_where_all_x_are():
    whole = plot_lines({"a": [(1, 1), (3, 2)]}, x_label="x", y_label="y")
    assert all(tick == round(tick) for tick in whole.get_xticks())
    parts = plot_lines(
        {"a": [(1, 1), (3, 2)], "b": [(1.5, 1)]}, x_label="x", y_label="y"
    )
    assert not all(tick == round(tick) for tick in parts.get_xticks())


def test_long_curves_have_no_markers():
    ax = plot_lines(
        {"short": enumerate(range(40)), "long": enumerate(range(41))},
        x_label="x",
        y_label="y",
    )
    assert [line.get_marker() for line in ax.lines] == ["o", ""]


@pytest.mark.parametrize(
    "curves, message",
    [
        ({}, "0 curves in one figure: expected 1 to 7"),
        ({str(i): [(1, 1.0)] for i in range(8)}, "8 curves .* expected 1 to 7"),
        ({"GRU": []}, "'GRU' has no points"),
        ({"GRU": [(1, [])]}, "a point has no value"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(curves, message):
    with pytest.raises(ValueError, match=message):
        plot_lines(curves, x_label="x", y_label="y")


def test_a_history_is_drawn_against_its_steps_and_the_kept_row_ringed():
    ax = plot_history({"GRU": HISTORY, "LSTM": History(HISTORY.rows)})
    assert ax.lines[0].get_xydata().tolist() == [[100, 2.5], [200, 1.5], [300, 1.0]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "training loss")
    [rings] = ax.collections
    assert rings.get_offsets().tolist() == [[200, 1.5]]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["GRU", "LSTM", "weights kept"]


def test_a_metric_is_drawn_where_it_was_measured():
    ax = plot_history({"GRU": HISTORY}, metric="wer")
    assert ax.lines[0].get_xydata().tolist() == [[300, 0.8]]
    assert ax.get_ylabel() == "wer"
    assert not ax.collections  # the kept row has no such metric


def test_an_unknown_metric_is_refused():
    with pytest.raises(ValueError, match=r"none with 'bleu'.*per, wer"):
        plot_history({"GRU": HISTORY}, metric="bleu")
    with pytest.raises(ValueError, match=r"'GRU' has 0 rows, .* it knows no metric"):
        plot_history({"GRU": History()})


@pytest.mark.parametrize("vertical", [False, True])
def test_bars_have_their_length_and_their_number(vertical):
    values = {"shuffled": 0.412, "buckets": [0.01, 0.02, 0.06], "loss": -0.1}
    ax = plot_bars(
        values,
        value_label="padding",
        name_label="batches",
        number_format=".1%",
        vertical=vertical,
    )
    length = "get_height" if vertical else "get_width"
    expected = [0.412, 0.03, -0.1]
    assert [getattr(p, length)() for p in ax.patches] == pytest.approx(expected)
    assert texts(ax) == ["41.2%", "3.0%", "−10.0%"]
    names, label = (x_ticks, ax.get_ylabel) if vertical else (y_ticks, ax.get_xlabel)
    assert names(ax) == list(values)
    assert label() == f"padding ({Spread.RANGE.value})"
    [bars] = [c for c in ax.containers if hasattr(c, "has_yerr")]
    ends = [seg[:, int(vertical)].tolist() for seg in bars[2][0].get_segments()]
    assert np.allclose(ends, [[0.412, 0.412], [0.01, 0.06], [-0.1, -0.1]])


def test_no_bars_are_refused():
    with pytest.raises(ValueError, match="no bars"):
        plot_bars({}, value_label="x", name_label="y")


def test_dots_have_their_interval_their_number_and_the_look_of_their_group():
    ax = plot_dots(
        DOTS,
        groups=GROUPS,
        value_label="WER",
        name_label="system",
        number_format=".0%",
    )
    assert y_ticks(ax) == list(DOTS)
    assert texts(ax) == ["30%", "25%", "100%"]
    dots = [container[0] for container in ax.containers]
    assert [d.get_xydata().tolist() for d in dots] == [
        [[0.3, 0]],
        [[0.25, 1]],
        [[1, 2]],
    ]
    [segment] = ax.containers[0][2][0].get_segments()
    assert np.allclose(segment, [[0.2, 0], [0.35, 0]])
    assert not any(container[2] for container in ax.containers[1:])
    ours, first, second = ((d.get_color(), d.get_marker()) for d in dots)
    assert first == second
    assert all(one != other for one, other in zip(ours, first, strict=True))
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["published", "measured"]
    low, high = ax.get_ylim()
    assert low > high, "the first is on top"


def test_dots_without_a_group_and_no_dots_are_refused():
    labels = {"value_label": "x", "name_label": "y"}
    with pytest.raises(ValueError, match="'a paper' is in no group"):
        plot_dots(DOTS, groups={"ours": "measured"}, **labels)
    with pytest.raises(ValueError, match="0 groups in one figure"):
        plot_dots({}, groups={}, **labels)


def test_histograms_show_shares_so_that_series_compare():
    ax = plot_histogram(
        {"letters": [3, 3, 5, 4], "sounds": [2, 3] * 50}, x_label="length"
    )
    letters, sounds = ax.containers
    assert [bar.get_height() for bar in letters] == [0.5, 0.25, 0.25]
    assert [bar.get_height() for bar in sounds] == [0.5, 0.5]
    middles = [[b.get_x() + b.get_width() / 2 for b in bars] for bars in ax.containers]
    assert [[round(x) for x in xs] for xs in middles] == [[3, 4, 5], [2, 3]]
    assert letters[0].get_x() + letters[0].get_width() <= sounds[1].get_x() + 1e-9
    assert letters[0].get_hatch() != sounds[0].get_hatch()


def test_an_empty_series_is_refused():
    with pytest.raises(ValueError, match="'sounds' is empty"):
        plot_histogram({"sounds": []}, x_label="length")
    with pytest.raises(ValueError, match="0 series"):
        plot_histogram({}, x_label="length")


# The tree of a search


def boxes_of(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]


def test_a_tree_names_its_nodes_and_scores_and_leaves_out_the_impossible():
    ax = plot_beam_tree(TRACE, SOUNDS)
    assert texts(ax) == [
        "<bos>",
        *("N", "−0.50", "K", "−0.90", "F", "−3.00", "AY", "−0.90", "AE", "−0.70"),
        *("<eos>", "−0.40", "<eos>", "−0.80", "<eos>", "−0.50"),
    ]
    assert x_ticks(ax) == ["1", "2", "3"]
    assert len(boxes_of(ax)) == 9
    assert len([p for p in ax.patches if isinstance(p, PathPatch)]) == 8


def test_discarded_branches_are_dashed_and_finished_ones_green():
    _, *boxes = boxes_of(plot_beam_tree(TRACE, SOUNDS))
    finite = [node for node in NODES if node.score > -math.inf]
    assert [box.get_linestyle() == "--" for box in boxes] == [
        not node.kept for node in finite
    ]
    green = {
        box.get_facecolor()
        for box, node in zip(boxes, finite, strict=True)
        if node.kept
    }
    assert len(green) == 2  # kept, and kept because finished
    assert boxes[-1].get_facecolor() == boxes[-2].get_facecolor()
    assert boxes[-1].get_facecolor() != boxes[0].get_facecolor()


def emphasised(ax, nodes):
    thick = [box.get_edgecolor() == to_rgba(VERMILION) for box in boxes_of(ax)]
    return {index for index, best in zip((ROOT, *nodes), thick, strict=True) if best}


def test_the_finished_hypothesis_of_highest_score_is_emphasised():
    drawn = [i for i, node in enumerate(NODES) if node.score > -math.inf]
    assert emphasised(plot_beam_tree(TRACE, SOUNDS), drawn) == {ROOT, 1, 4, 8}


def test_where_none_finished_the_best_longest_prefix_is():
    ax = plot_beam_tree(Trace(NODES[:5], 40, None), SOUNDS)
    assert emphasised(ax, range(5)) == {ROOT, 1, 4}
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["kept", "discarded", "best output"]


def test_where_nothing_was_kept_the_best_node_is():
    nodes = [Node(ROOT, 4, -total, -total, kept=False) for total in (2.0, 1.0)]
    ax = plot_beam_tree(Trace(nodes, 9, None), SOUNDS)
    assert emphasised(ax, range(2)) == {ROOT, 1}


@pytest.mark.parametrize("count", [0, MOST_NODES + 1])
def test_trees_nobody_could_read_are_refused(count):
    nodes = [Node(ROOT, 4, -1.0, -1.0, kept=True)] * count
    with pytest.raises(ValueError, match=f"{count} nodes: expected 1 to {MOST_NODES}"):
        plot_beam_tree(Trace(nodes, 9, None), SOUNDS)


@st.composite
def trees(draw):
    parents = draw(
        st.lists(st.integers(0, 10**6), min_size=1, max_size=40).map(
            lambda numbers: [n % (i + 1) - 1 for i, n in enumerate(numbers)]
        )
    )
    totals = draw(st.lists(st.floats(-9, 0), min_size=40, max_size=40))
    return {
        i: Node(parent, 4, total, total, kept=True)
        for i, (parent, total) in enumerate(zip(parents, totals, strict=False))
    }


@given(trees())
def test_branches_never_cross_and_boxes_never_touch(nodes):
    places = _places(nodes)
    assert places.keys() == {ROOT, *nodes}
    columns = {}
    for index, (step, _) in sorted(places.items(), key=lambda item: item[1][1]):
        columns.setdefault(step, []).append(index)
        if index != ROOT:
            assert places[nodes[index].parent][0] == step - 1
    for step, column in columns.items():
        heights = [places[index][1] for index in column]
        assert all(b - a > 1 - 1e-9 for a, b in pairwise(heights))
        if step:
            parents = [places[nodes[index].parent][1] for index in column]
            assert parents == sorted(parents)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=4))
def test_heights_are_the_nearest_that_are_one_apart(wanted):
    spread = _spread_out(wanted, half=100.0)
    cost = math.dist(wanted, spread)
    # brute force: where neighbours touch they move as one, to their mean
    best = math.inf
    for glued in range(2 ** (len(wanted) - 1)):
        blocks = [[0]]
        for i in range(1, len(wanted)):
            if glued >> (i - 1) & 1:
                blocks[-1].append(i)
            else:
                blocks.append([i])
        heights = []
        for block in blocks:
            start = statistics.fmean(wanted[i] - k for k, i in enumerate(block))
            heights += [start + k for k in range(len(block))]
        if all(b - a > 1 - 1e-9 for a, b in pairwise(heights)):
            best = min(best, math.dist(wanted, heights))
    assert all(b - a > 1 - 1e-9 for a, b in pairwise(spread))
    assert cost == pytest.approx(best, abs=1e-6)


def test_heights_stay_within_bounds():
    assert _spread_out([5.0, 5.0, 5.0], half=2.0) == [0, 1, 2]
    assert _spread_out([-9.0, 0.5], half=2.0) == [-2, 0.5]


# Boxes and arrows


def test_boxes_stand_where_they_are_put_with_their_text():
    ax = plot_boxes(BOXES, ARROWS)
    assert texts(ax) == ["encoder", "memory", "decoder\nstep", "reads"]
    for patch, box in zip(boxes_of(ax), BOXES.values(), strict=True):
        extent = patch.get_path().get_extents()
        middle = ((extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2)
        assert middle == pytest.approx((box.x, box.y), abs=0.02)
        assert extent.width == pytest.approx(box.width, abs=0.02)
        assert patch.get_edgecolor() == to_rgba(box.colour)


def test_text_stays_inside_of_its_box():
    boxes = {
        "long": Box("states and mask", 0, 0, width=1),
        "high": Box("one\ntwo\nthree\nfour", 8, 0, height=0.5),
    }
    ax = plot_boxes(boxes)
    ax.figure.draw_without_rendering()
    for text, patch in zip(ax.texts, boxes_of(ax), strict=True):
        inner, outer = text.get_window_extent(), patch.get_window_extent()
        assert inner.x0 > outer.x0
        assert inner.x1 < outer.x1
        assert inner.y0 > outer.y0
        assert inner.y1 < outer.y1


def test_arrows_touch_the_borders_and_not_the_centres():
    ax = plot_boxes(BOXES, ARROWS)
    ax.figure.draw_without_rendering()
    first = next(p for p in ax.patches if isinstance(p, FancyArrowPatch))
    ends = first.get_path().vertices[[0, 2], 0]
    half = BOXES["encoder"].width / 2
    assert ends[0] == pytest.approx(half, abs=0.1)
    assert ends[0] > half
    assert ends[1] == pytest.approx(2 - half, abs=0.1)


def test_arrows_to_nowhere_are_refused():
    with pytest.raises(ValueError, match=r"a box called attention: there are encoder"):
        plot_boxes(BOXES, [Arrow("encoder", "attention")])
    with pytest.raises(ValueError, match="no boxes"):
        plot_boxes({})
