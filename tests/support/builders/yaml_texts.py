"""YAML that is short to write and long to read."""


def write_doubling(levels: int, merge: str) -> bytes:
    """Write levels that each name the one before twice."""
    lines = ["a0: &a0 {" + ", ".join(f"k{number}: v" for number in range(8)) + "}"]
    for level in range(1, levels):
        before = f"*a{level - 1}"
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{before}, {before}]}}" if merge else f"[{before}, {before}]"))
    return "\n".join(lines).encode()
