"""The table of a run of the matrix, as JSON and as Markdown."""

import json

OUTCOMES = {"passed": "ok", "FAILED": "**FAILED**", "cannot run": "cannot run",
            "passed the second time": "ok, the second time"}


def columns_of(results):
    return list(dict.fromkeys(result["ends"] for result in results))


def row_of(result):
    return result["cell"], result["gid"], result["mtu"]


def mark(result):
    """What stands in the table: the outcome, and how many requests were sent again."""
    if result is None:
        return ""
    again = result.get("sent again", 0)
    return OUTCOMES[result["outcome"]] + (f" ({again})" if again else "")


def markdown(results, versions):
    columns = columns_of(results)
    by_place = {(row_of(result), result["ends"]): result for result in results}
    lines = [f"* {name}: {version}" for name, version in versions.items()]
    lines += ["", "| program | GID | MTU | " + " | ".join(columns) + " |",
              "|---" * (3 + len(columns)) + "|"]
    for row in dict.fromkeys(map(row_of, results)):
        marks = [mark(by_place.get((row, column))) for column in columns]
        lines.append("| " + " | ".join([*map(str, row), *marks]) + " |")
    for result in results:
        if result["outcome"] != "passed":
            lines += ["", f"{result['ends']}, {result['cell']}, {result['gid']}, MTU "
                      f"{result['mtu']}: {result['outcome']}: {'; '.join(result['reasons'])}"]
    return "\n".join(lines) + "\n"


def write(directory, results, versions):
    directory.mkdir(parents=True, exist_ok=True)
    document = {"versions": versions, "results": results}
    (directory / "table.json").write_text(json.dumps(document, indent=1) + "\n")
    (directory / "table.md").write_text(markdown(results, versions))
