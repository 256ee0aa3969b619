"""The results as text."""

FORMAT = "{:<38} {:>18} {:>18}  {:<33} {:>7} {:>15} {:>16}  {}"


def head():
    return FORMAT.format("case", "urxe", "yardstick", "which", "ratio", "spread", "target", "met")


def number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def line(result):
    name, target, unit = result["name"], result["target"], result["unit"]
    if "error" in result:
        return f"{name:<38} FAILED: {result['error']}"
    met = "yes" if result["met"] else "NO"
    spread = f"{number(result['lowest'])} .. {number(result['highest'])}"
    ours = f"{number(result['ours'])} {unit}"
    if "theirs" not in result:
        return FORMAT.format(name, ours, "", "", "", spread, target, met)
    theirs = f"{number(result['theirs'])} {unit}"
    return FORMAT.format(name, ours, theirs, result["against"], number(result["ratio"]), spread,
                         target, met)
