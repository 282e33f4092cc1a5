"""Figures of runs, for tools/plot."""


class Wrong(Exception):
    """What was asked for cannot be drawn; the text is why."""
