"""What was read, in words, for the person at the terminal."""

from ingest.protocol import EVENT, NOISE, UNKNOWN, Counts

SHOWN_SHAPES = 10


def report(counts: Counts) -> str:
    """Lines, events, attempts, and the most frequent shapes of lines that no grammar knows."""
    lines = counts.lines
    said = [
        f"{sum(lines.values()):,} lines: {lines[EVENT]:,} told, {lines[NOISE]:,} noise, {lines[UNKNOWN]:,} unknown",
        f"{counts.events:,} events: {counts.attempts_complete:,} attempts whole, {counts.attempts_incomplete:,} partly",
    ]
    if counts.shapes:
        said.append(f"unknown lines, the {min(SHOWN_SHAPES, len(counts.shapes))} most frequent shapes:")
        said += [f"  {count:>9,}  {shape}" for shape, count in counts.shapes.most_common(SHOWN_SHAPES)]
    return "\n".join(said)
