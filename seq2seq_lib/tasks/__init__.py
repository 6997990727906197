"""What a task is: its metrics, its outputs as text, and what its card says."""
