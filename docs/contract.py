"""contract.py HEADER - a public header with the contract before each name, for doxygen and for editors
(make docs, make install).

    python3 docs/contract.py include/tapegrad/ops/index.h           the header, its comments as
        documentation comments
    python3 docs/contract.py --missing include/tapegrad/*.h         the names that no prose belongs to;
        status 1 if there are some

In the sources one comment may speak of several functions that stand below it without a blank line between
them.  Here each of them gets that comment, its own sentence first.  A row of ops.def becomes a prototype
with its formula and gradient.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "include")


OPTIONS = "Options of a function below, whose ..._defaults constant holds the defaults."


def pieces(text):
    """The header cut into ("comment" | "directive" | "blank" | "code", text)."""
    lines, i = text.splitlines(keepends=True), 0

    def take(kind, done):
        nonlocal i
        start, piece = i, ""
        while i < len(lines):
            piece += lines[i]
            i += 1
            if done(piece):
                break
        return kind, "".join(lines[start:i])

    def declared(piece):
        bare = re.sub(r"/\*.*?\*/", "", piece, flags=re.S)
        if "/*" in bare or any(bare.count(a) != bare.count(b) for a, b in ("()", "{}")):
            return False
        return bare.rstrip().endswith((";", "}"))

    while i < len(lines):
        line = lines[i]
        if not line.strip():
            yield take("blank", lambda piece: True)
        elif line.startswith("/*"):
            yield take("comment", lambda piece: "*/" in piece)
        elif line.startswith("#"):
            yield take("directive", lambda piece: not piece.endswith("\\\n"))
        elif line.startswith(('extern "C" {', "}")):
            yield take("code", lambda piece: True)
        else:
            yield take("code", declared)


def prose(comment):
    """The words of a comment, without its stars and the rule of a section."""
    text = re.sub(r"^/\*+|\*/\s*$", "", comment.strip())
    text = re.sub(r"^\s?-{4} (.*?) -+\s*$", r"\1", text, flags=re.M)
    return re.sub(r"^[ \t]*\* ?", "", text, flags=re.M).strip("\n ")


def names(code):
    """The public names that a declaration or a directive states."""
    if code.lstrip().startswith("#"):
        m = re.match(r"\s*#\s*define\s+(\w+)", code)
        return [m.group(1)] if m and not m.group(1).endswith("_H") else []
    if "typedef" in code or re.match(r"\s*(enum|struct)\b", code):
        inner = re.search(r"\{(.*)\}", code, re.S)
        enums = (
            re.findall(r"\b(TENSOR_\w+|NN_\w+|OPTIM_\w+|DATA_\w+|OP_\w+|KEEP_\w+|ROW_\w+)\b", inner.group(1))
            if inner
            else []
        )
        last = re.search(r"(\w+)\s*;\s*(?:/\*.*)?$", code.strip(), re.S) or re.search(r"\(\*(\w+)\)", code)
        return ([last.group(1)] if last else []) + enums
    m = re.search(
        r"(\w+)\)?\(|(\w+)\s*;", re.sub(r"__attribute__\(\(.*?\)\)\)|TAPEGRAD_PRINTF\(.*?\)", "", code)
    )
    return [m.group(1) or m.group(2)] if m else []


def sentence(text, name):
    """What the comment says of this very name: from "name - " or "name(...) - " to the end of that
    sentence."""
    bare = re.sub(r"_args$|_$", "", name)
    m = re.search(
        r"\b%s\b(?:\([^\n]*?\))?[^-\n]* - (.*?)(?:(?<![ .])\.(?=\s|$)|;\s|\n\n|$)" % re.escape(bare),
        text,
        re.S,
    )
    return re.sub(r"\s+", " ", m.group(1)).strip() if m else ""


def comment_of(title, body):
    """A documentation comment: one line, then the words as they stand."""
    body = body.replace("*/", "* /").replace("/*", "/ *")
    lines = [title, "@verbatim", *body.split("\n"), "@endverbatim"]
    return "/** " + "\n * ".join(lines).replace(" \n", "\n") + " */\n"


def documented(text, name):
    first = sentence(text, name)
    return comment_of("@brief " + (first[:1].upper() + first[1:] + "." if first else name), text)


# What ops.def gives of a row of each kind.
ROWS = {
    "UNARY(name, t, s, y, dx, ...)": "s, #y, #dx",
    "UNARY1(name, t, s, p, pi, y, dx, ...)": "s, #y, #dx, #p, #pi",
    "UNARY2(name, t, s, p, pi, q, qi, y, dx, ...)": "s, #y, #dx, #p, #pi, #q, #qi",
    "BINARY(name, t, s, y, da, ka, db, ...)": 's, #y, "a = " #da "; db = " #db',
    "BINARY1(name, t, s, p, pi, y, da, ka, db, ...)": 's, #y, "a = " #da "; db = " #db, #p, #pi',
    "COMPARE(name, t, s, y, ...)": 's, #y, ""',
    "PREDICATE(name, t, s, y, ...)": 's, #y, ""',
    "BITS1(name, t, s, y, ...)": 's, #y, ""',
    "BITS2(name, t, s, y, ...)": 's, #y, ""',
    "BITSC(name, t, s, c, c0, y, ...)": 's, #y, ""',
}


def expanded(defines):
    return subprocess.run(
        ["gcc", "-E", "-P", "-x", "c", "-I" + INCLUDE, "-"],
        input=defines + "#include <tapegrad/ops.def>\n",
        text=True,
        capture_output=True,
        check=True,
    ).stdout


def bodies():
    """What ops.def says of each row: its summary, and all of it."""
    text = expanded("".join("#define %s ROW_DOC(#name, %s)\n" % row for row in ROWS.items()))
    found = {}
    for row in re.findall(r"ROW_DOC\((.*?)\)\s*(?=ROW_DOC|$)", text, re.S):
        parts = [re.sub(r'"\s*"', "", p)[1:-1] for p in re.findall(r'(?:"(?:[^"\\]|\\.)*"\s*)+', row)]
        name, summary, y, dx, *params = [p.strip().strip('"') for p in parts]
        dx = dx if dx.startswith("a = ") or not dx else "x = " + dx
        body = summary + "\n\n    y = " + y + ("\n    d" + dx if dx else "\n    no gradient")
        body += "".join("\n    %s: %s by PyTorch's default" % pair for pair in zip(params[::2], params[1::2]))
        found[name] = summary, body
    return found


def rows(defines):
    """The prototypes that the header's own macros make of ops.def, with what it says of the rows."""
    found, out = bodies(), []
    for name, arguments in re.findall(r"TAPEGRAD_API Tensor \*tensor_(\w+)\((.*?)\);", expanded(defines)):
        plain = name.rstrip("_")
        row = plain if plain in found else re.sub("_scalar$", "", plain)
        summary, body = found[row]
        title = summary[:1].upper() + summary[1:] + (", of a number" if row != plain else "")
        out.append(comment_of("@brief " + title + (", in place." if name.endswith("_") else "."), body))
        out.append("TAPEGRAD_API Tensor *tensor_%s(%s);\n" % (name, arguments))
    return "".join(out) + "".join("#undef %s\n" % kind for kind in re.findall(r"#define (\w+)", defines))


def file_comment(comment):
    return comment_of("@file", comment)


def mention(comments, name):
    """The first comment of the file that speaks of the name."""
    bare = re.sub(r"_args$", "", name)
    return next((c for c in comments if re.search(r"\b%s\b" % re.escape(bare), c)), "")


def public(piece):
    """The names that users may write."""
    found = [n for n in names(piece) if re.match(r"(tensor|nn|optim|data|io|op|tapegrad|assert)_|[A-Z]", n)]
    found = [n for n in found if not re.match(r"tapegrad_\w+_$", n)]  # what macros call
    return [n for n in found if not n.endswith("_") or n.islower()]


def contract(path, missing):
    """The header with a documentation comment before each name."""
    out, comment, section, intro, defines = [], "", "", "", ""
    text = open(path).read()
    comments = [prose(piece) for kind, piece in pieces(text) if kind == "comment"]
    for kind, piece in pieces(text):
        if kind == "comment":
            comment = prose(piece)
            out.append(piece if intro else file_comment(comment))
            intro = intro or comment
            section = comment if piece.startswith("/* ----") else section
        elif kind == "blank":
            comment = ""
            out.append(piece)
        elif "#include <tapegrad/ops.def>" in piece:
            out.append(rows(defines))
        else:
            defines += piece if kind == "directive" and re.match(r"#define [A-Z1-9]+\b[^_]", piece) else ""
            found = public(piece)
            trailing = re.search(r"/\*(.*?)\*/\s*$", piece, re.S)
            words = comment or (trailing.group(1).strip() if trailing else "") or section
            if found and not words:
                words = mention(comments, found[0])
            if found and not words and not re.match(r"[a-z]", found[0]):
                words = OPTIONS if found[0].endswith("Args") else intro
            if found and words:
                out.append(documented(words, found[0]))
            elif found and "_DEFAULTS" not in piece and "_defaults" not in piece:
                missing += ["%s: %s" % (path, found[0])]
            out.append(piece)
    return "".join(out)


def main():
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    missing = []
    texts = [contract(p, missing) for p in paths]
    if "--missing" in sys.argv:
        print("\n".join(missing) or "every public name has its contract")
        sys.exit(bool(missing))
    sys.stdout.write("".join(texts))


if __name__ == "__main__":
    main()
