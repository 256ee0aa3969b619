"""The ratios as a picture: SVG."""

from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, STEP = 900, 390, 70, 58, 30
BAR = 14


def goodness(result):
    """How much of the target is reached, so that more is better in every row: the value, and
    what the lowest and the highest measurement give."""
    comparison, target = result["target"].split()[:2]
    values = [result["ratio"], result["lowest"], result["highest"]]
    if comparison == ">=":
        return [value / float(target) for value in values]
    middle, low, high = (float(target) / value for value in values)
    return [middle, high, low]


def label(result):
    return f"{result['name']}, against {result['against']}"


def row(result, number, scale):
    middle, low, high = goodness(result)
    y = TOP + number * STEP
    color = "#2b6cb0" if result["met"] else "#c05621"
    x = [LEFT + min(value, scale.most) * scale.unit for value in (middle, low, high)]
    return f"""
<text x="{LEFT - 8}" y="{y + BAR - 2}" text-anchor="end">{escape(label(result))}</text>
<rect x="{LEFT}" y="{y}" width="{x[0] - LEFT:.1f}" height="{BAR}" fill="{color}"/>
<line x1="{x[1]:.1f}" x2="{x[2]:.1f}" y1="{y + BAR / 2}" y2="{y + BAR / 2}" stroke="#1a202c"/>
<text x="{max(x) + 6:.1f}" y="{y + BAR - 2}">{result['ratio']:.2f} ({result['target']})</text>"""


class Scale:
    def __init__(self, most):
        self.most = most
        self.unit = (WIDTH - LEFT - RIGHT - 60) / most


def draw(results):
    shown = [result for result in results if "ratio" in result]
    scale = Scale(min(max([goodness(result)[2] for result in shown] + [1.2]), 4.0))
    height = TOP + STEP * len(shown) + 16
    target_x = LEFT + scale.unit
    rows = "".join(row(result, number, scale) for number, result in enumerate(shown))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"
 viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="#1a202c">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="16" y="22" font-size="15">urxe against sockets of the same machine</text>
<text x="16" y="40">How much of the target is reached: the dashed line is the target, longer is
better. The line in a bar is the spread. Beside it the ratio and its target.</text>{rows}
<line x1="{target_x:.1f}" x2="{target_x:.1f}" y1="{TOP - 8}" y2="{height - 10}" stroke="#1a202c"
 stroke-dasharray="4 3"/>
</svg>"""
