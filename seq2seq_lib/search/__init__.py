"""Chapter 5: from next-symbol probabilities to whole outputs.

Every search here drives the contract of chapter 2 and nothing else. An output is a
sequence of symbols ended by ``EOS``; its length L counts that ``EOS``, and its score
is log p / L^α.
"""

from seq2seq_lib.search.beam import SearchConfig, beam_search
from seq2seq_lib.search.exhaustive import exhaustive_search
from seq2seq_lib.search.hypothesis import Hypothesis, Node, Search, SearchResult, Trace
from seq2seq_lib.search.stepwise import greedy_search, keep_probable, sample

__all__ = [
    "Hypothesis",
    "Node",
    "Search",
    "SearchConfig",
    "SearchResult",
    "Trace",
    "beam_search",
    "exhaustive_search",
    "greedy_search",
    "keep_probable",
    "sample",
]
