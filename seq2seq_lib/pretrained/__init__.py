"""Models that come with the library, their stored results, and export to others."""
