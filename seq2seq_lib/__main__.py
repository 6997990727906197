"""Run the command line with ``python -m seq2seq_lib``."""

from seq2seq_lib.cli import main

raise SystemExit(main())
