"""The modules of the library, in the order in which a reader meets them, parsed."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "seq2seq_lib"

# The rooms in the order in which they are met, and with them the files of the hallway:
# no module imports from a later room.
ROOMS = """
    files device seeds configuration data metrics interface models search training
    tasks evaluation pretrained recipes plotting grading cli __main__ bench
""".split()
# The modules of each room, likewise. A package follows what it collects.
INSIDE = {
    "data": """
        frames vocabulary examples batch download toy cmudict pronalsyl surnames
        frequent_words invented_words subwords multi30k corpora alignments
    """,
    "models": """
        dropout fast lookup recurrent convolutional rnn_seq2seq attention
        rnn_attention multi_head self_attention normalization positional
        transformer_blocks transformer_stacks transformer
        torch_transformer saved ensemble
    """,
    "search": "hypothesis stepwise beam exhaustive",
    "training": """
        loss schedule scheduled_sampling config precision objective threads distributed
        history
        state fit gradients
    """,
    "tasks": "task symbols pronunciation toy sentences translation",
    "evaluation": """
        alignment decoding exposure scores tuning analysis
        changed_batches trial contract
        blank_page.written blank_page.weights blank_page.entry blank_page.functions
        blank_page.recurrent blank_page.beam blank_page.attention blank_page.layer_norm
        blank_page.positions blank_page.blocks blank_page
    """,
    "pretrained": """
        stored_results loading publishing scoring
        export.engine export.ctranslate2 export.onnx_graph export.onnx export
    """,
    "recipes": """
        soft_targets joint_ngram distillation recipe running experiments
    """,
    "plotting": "style curves bars grids heat_maps boxes trees notebook",
    "grading": """
        wire box sandbox expect exercise checks submission session batch report practice
    """,
    "cli": """
        options predict evaluate train export grade publish experiment tune analyze
        compare
    """,
    "bench": """
        compare power_law memory growing_work growth report baseline tutorial steps
        peers.stubs peers.huggingface peers.joeynmt peers.opennmt peers.fairseq
        peers.d2l peers training recurrent decoding variants __main__
    """,
}
READING_ORDER = [
    module
    for room in ROOMS
    for module in (
        *(f"{room}.{name}" for name in INSIDE.get(room, "").split()),
        room,
    )
]
SOURCES = {
    ".".join(path.relative_to(LIBRARY).with_suffix("").parts): ast.parse(
        path.read_text(encoding="utf-8")
    )
    for path in LIBRARY.rglob("*.py")
}
MODULES = {name.removesuffix(".__init__"): tree for name, tree in SOURCES.items()}
MODULES.pop("__init__")
