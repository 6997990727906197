"""Figures: every function takes data and axes, and returns the axes.

One style file, ``course.mplstyle``, holds sizes and a palette that colour-blind
readers can tell apart.
"""

from seq2seq_lib.plotting.bars import plot_bars, plot_dots, plot_histogram
from seq2seq_lib.plotting.boxes import Arrow, Box, plot_boxes
from seq2seq_lib.plotting.curves import Interval, Spread, plot_history, plot_lines
from seq2seq_lib.plotting.grids import plot_batch, plot_mask
from seq2seq_lib.plotting.heat_maps import heat_map
from seq2seq_lib.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALETTE,
    PURPLE,
    SKY,
    VERMILION,
    use_style,
)
from seq2seq_lib.plotting.trees import plot_beam_tree

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PALETTE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "Arrow",
    "Box",
    "Interval",
    "Spread",
    "heat_map",
    "plot_bars",
    "plot_batch",
    "plot_beam_tree",
    "plot_boxes",
    "plot_dots",
    "plot_histogram",
    "plot_history",
    "plot_lines",
    "plot_mask",
    "use_style",
]
