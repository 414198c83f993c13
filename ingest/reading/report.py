"""A summary of what was read, for the person at the terminal."""

from ingest.reading.protocol import EVENT, NOISE, OUTCOMES, UNKNOWN, UNTRUSTED, Counts

SHOWN_SHAPES = 10


def report(counts: Counts) -> str:
    """Report lines, events, attempts, and the most frequent shapes of lines that no grammar has."""
    lines = counts.lines
    complete, incomplete = counts.attempts_complete, counts.attempts_incomplete
    read = sum(lines[outcome] for outcome in OUTCOMES)
    text = [
        f"{read:,} lines: {lines[EVENT]:,} used, {lines[NOISE]:,} noise, {lines[UNKNOWN]:,} unknown",
        f"{counts.events:,} events: {complete:,} complete attempts, {incomplete:,} incomplete",
    ]
    if untrusted := lines.get(UNTRUSTED):
        text.insert(1, f"{untrusted:,} more were left out: the configuration does not name who wrote them")
    if counts.shapes:
        text.append(f"unknown lines, the {min(SHOWN_SHAPES, len(counts.shapes))} most frequent shapes:")
        text += [f"  {count:>9,}  {shape}" for shape, count in counts.shapes.most_common(SHOWN_SHAPES)]
    return "\n".join(text)
