"""The modules of the library, in the order in which a reader meets them, parsed."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "seq2seq_lib"

# A package follows what it collects.
READING_ORDER = """
    files device seeds configuration
    data.frames data.vocabulary data.examples data.batch data.download data.toy
    data.cmudict data.pronalsyl
    data.surnames data.frequent_words data.invented_words data.subwords data.multi30k
    data.corpora data.alignments data
    metrics interface
    models.dropout models.linear models.lookup models.recurrent models.convolutional
    models.rnn_seq2seq models.attention models.rnn_attention models.multi_head
    models.self_attention models.normalization models.positional
    models.transformer_blocks models.transformer models.torch_transformer
    models.saved models.ensemble models
    search.hypothesis search.stepwise search.beam search.exhaustive search.config search
    training.loss training.schedule training.scheduled_sampling training.config
    training.objective training.threads training.distributed
    training.history training.state training.fit training.gradients training
    evaluation.alignment evaluation.decoding evaluation tasks.translation tasks
    evaluation.exposure
    pretrained.results pretrained.weights pretrained
    recipes.soft_targets recipes.joint_ngram recipes.distillation recipes
    recipes.running recipes.experiments
    evaluation.scores evaluation.tuning evaluation.analysis
    plotting.style plotting.curves plotting.bars plotting.grids plotting.heat_maps
    plotting.boxes plotting.trees plotting plotting.notebook
    pretrained.export.engine pretrained.export.ctranslate2 pretrained.export.onnx_graph
    pretrained.export.onnx pretrained.export
    grading.wire grading.box grading.sandbox grading.expect grading.exercise
    grading.checks grading.submission grading.session grading.batch grading.report
    cli.devices cli.predict cli.train cli.scoring cli.packing cli.grade cli __main__
    grading.practice grading
    bench.compare bench bench.power_law bench.memory bench.growing_work bench.growth
    bench.report bench.baseline bench.tutorial bench.steps
    bench.peers.stubs bench.peers.huggingface bench.peers.joeynmt
    bench.peers.opennmt bench.peers.fairseq bench.peers.d2l bench.peers
    bench.training bench.recurrent bench.decoding bench.variants bench.__main__
""".split()
SOURCES = {
    ".".join(path.relative_to(LIBRARY).with_suffix("").parts): ast.parse(
        path.read_text(encoding="utf-8")
    )
    for path in LIBRARY.rglob("*.py")
}
MODULES = {name.removesuffix(".__init__"): tree for name, tree in SOURCES.items()}
MODULES.pop("__init__")
