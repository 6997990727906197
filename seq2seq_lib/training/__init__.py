"""Chapter 4: loss, learning rate, the training loop, and what it leaves on disk."""

from seq2seq_lib.training.config import Precision, TrainingConfig
from seq2seq_lib.training.fit import fit
from seq2seq_lib.training.gradients import gradient_norms
from seq2seq_lib.training.history import History, Row
from seq2seq_lib.training.loss import cross_entropy
from seq2seq_lib.training.schedule import Schedule, learning_rate_factor
from seq2seq_lib.training.scheduled_sampling import sampled_forward

__all__ = [
    "History",
    "Precision",
    "Row",
    "Schedule",
    "TrainingConfig",
    "cross_entropy",
    "fit",
    "gradient_norms",
    "learning_rate_factor",
    "sampled_forward",
]
