#!/usr/bin/env python3
"""House rules that the build runs. `tidy.py` checks the repository; `tidy.py --self-test` shows that each rule can fail;
`tidy.py --python` has pyflakes look at all Python.

Every complaint says file:line, what is wrong and what to do. Exit 1 if there is one.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import classes
import functions
import layering

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = (".cc", ".h")
LINE_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 700
METHODS_MAX, FIELDS_MAX = 40, 25
# Classes beyond these limits, and what they have: it may only shrink, and this list with it.
LARGER = {
    "client-sai/sai/filesystem.h: Filesystem": (51, 1),  # One method for each call of POSIX.
    "client-sai/sai/impl.h: Impl": (9, 49),  # The parts of a mount.
    "manager/core/state.h: State": (4, 46),
}
README_BYTES_MAX = 12288
LIBRARY_TESTS = ("_test.cc", "_fuzz.cc", "_bench.cc")

IMPURE = [
    (r"\bstd::unordered_|\babsl::(flat|node)_hash_", "an unordered container: use an ordered one, order must not depend on hashing"),
    (r"\bstd::hash\b", "std::hash: use common/base/hash.h, whose values never change"),
    (r"\bstd::(thread|jthread|mutex|shared_mutex|atomic|condition_variable|async|future)\b|\b(System)?Mutex(Lock)?\b", "threads: a core is owned by one loop"),
    (r"\bstd::(random_device|mt19937|rand)\b|\brand\(\)", "randomness: use common/base/rng.h, seeded from what is decided"),
    (r"\b(system_clock|steady_clock|clock_gettime|gettimeofday)\b|\btime\((nullptr|NULL|0)\)", "a clock: time comes in as an argument"),
    (r"\bstd::(ifstream|ofstream|fstream|cout|cerr)\b|\bfopen\(|\bgetenv\(|\bspdlog\b", "input, output or logging: return reasons, the shell logs"),
]
BANNED_WORDS = [
    (r"\b(TODO|FIXME|XXX)\b", "unfinished work: finish it or name the condition that ends it in the documents"),
    (r"/work/|/home/\w|/root/", "a path of some machine"),
    (r"\bassert\(", "assert vanishes in release: use MOSA_CHECK"),
    (r"\busing namespace\b", "using namespace: name what is used"),
    (r"\? co_await\b|(^\s*|\?.*\s): co_await\b", "co_await in a conditional expression, which GCC 12 destroys twice: use if and else"),
]
GENITIVE_FIRST = r"//+ *(?:Of|What of) "
# In every text, whatever its language; also where a line of a comment ends in between.
STALE = [
    (r"(?i)\bpapers?[\s/#*]{1,8}00\d\b", "a paper by number: use its short name in docs/papers.md"),
    (r"\bSPEC\s+section\b", "a specification that is not here: cite a page of docs, or nothing"),
]


def strip_strings_and_comments(line):
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r"//.*", "", line)


def check_code(path, text):
    """Complaints about one C++ file."""
    found = []
    lines = text.split("\n")
    name = os.path.basename(path)
    test = path.endswith(LIBRARY_TESTS + ("_fixture.h",)) or name.startswith("test_") or path.startswith("tests/")
    folder = layering.folder_of(path)
    if path.endswith(".h"):
        guard = "MOSA_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"
        if f"#ifndef {guard}" not in text or f"#define {guard}" not in text:
            found.append(f"{path}:1: include guard is not {guard}")
    if len(lines) > FILE_LINES_MAX + 1:
        found.append(f"{path}:{FILE_LINES_MAX}: {len(lines) - 1} lines: split it, at most {FILE_LINES_MAX}")
    found.extend(check_comments(path, lines))
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_MAX and "http" not in line and "#include" not in line:
            found.append(f"{path}:{number}: {len(line)} columns, at most {LINE_MAX}: run clang-format")
        if "\t" in line:
            found.append(f"{path}:{number}: a tab: run clang-format")
        include = re.match(r'\s*#include [<"]([^>"]+)[>"]', line)
        if include and not test:
            complaint = layering.check_include(path, number, include.group(1))
            if complaint:
                found.append(complaint)
        for pattern, why in BANNED_WORDS:
            if test and "namespace" in pattern:
                continue
            if re.search(pattern, line) and not (pattern.startswith(r"\bassert") and "static_assert" in line):
                found.append(f"{path}:{number}: {why}")
        if folder in layering.PURE and not test:
            for pattern, why in IMPURE:
                if re.search(pattern, strip_strings_and_comments(line)):
                    found.append(f"{path}:{number}: {folder} is pure, and this is {why}")
    found.extend(check_function_lengths(path, text))
    if not test:
        found.extend(check_classes(path, text))
    return found


def check_comments(path, lines):
    """Complaints about comments that begin with a genitive. Later lines of a comment may: a sentence can end before them."""
    found = []
    above = ""
    for number, line in enumerate(lines, 1):
        goes_on = above.lstrip().startswith("// ") and line.lstrip().startswith("//")
        if not goes_on and re.search(GENITIVE_FIRST, re.sub(r'"(\\.|[^"\\])*"', '""', line)):
            found.append(f"{path}:{number}: a comment says who or what first: it must not begin with 'Of' or 'What of'")
        above = line
    return found


def check_function_lengths(path, text):
    return [
        f"{path}:{first}: a function of {last - first + 1} lines: at most {FUNCTION_LINES_MAX}"
        for first, last in functions.functions(text)
        if last - first + 1 > FUNCTION_LINES_MAX
    ]


def check_classes(path, text):
    """Complaints about large classes. A struct without methods may have any number of fields."""
    found = []
    for line, name, methods, fields in classes.classes(text):
        known = LARGER.get(f"{path}: {name}")
        if known and (methods, fields) != known:
            found.append(f"{path}:{line}: {name} has {methods} methods and {fields} fields, but LARGER in tidy.py says {known}: if it shrank, write that there")
        if not known and (methods > METHODS_MAX or (methods > 0 and fields > FIELDS_MAX)):
            found.append(f"{path}:{line}: {name} has {methods} methods and {fields} fields: at most {METHODS_MAX} and {FIELDS_MAX}, part it by decisions")
    return found


def check_links(path, text, exists):
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            full = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if not exists(full):
                found.append(f"{path}:{number}: link to '{target}', which does not exist")
    return found


def check_stale(path, text):
    return [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {why}" for pattern, why in STALE for match in re.finditer(pattern, text)]


def check_size(path, data_bytes, bytes_max):
    return [] if data_bytes <= bytes_max else [f"{path}:1: {data_bytes} bytes, at most {bytes_max}: move what is not for everybody to docs"]


def check_version(cmake_text, citation_text):
    """The version is said to programs in one place, and to people who cite in another."""
    built = re.search(r"project\(mosa VERSION ([0-9.]+)", cmake_text)
    cited = re.search(r"(?m)^version: ([0-9.]+)$", citation_text)
    if built and cited and built.group(1) == cited.group(1):
        return []
    return [f"CITATION.cff:1: version {cited and cited.group(1)}, but CMakeLists.txt has {built and built.group(1)}"]


def check_listed(sources, cmake_text):
    """Every C++ source is named in some CMakeLists.txt, so that nothing rots unbuilt."""
    return [
        f"{path}:1: no CMakeLists.txt builds it: add it or delete it"
        for path in sources
        if not re.search(r"(^|[\s/(])" + re.escape(os.path.basename(path)) + r"\b", cmake_text)
    ]


def check_types(texts):
    """Complaints about types that product code defines twice under one full name: a program may hold either. `texts` by path."""
    found = []
    places = {}
    for path, text in texts.items():
        namespaces = []
        for number, line in enumerate(text.split("\n"), 1):
            if namespace := re.match(r"namespace\b ?([\w:]*) ?\{", line):
                namespaces.append(namespace.group(1))
            elif line.startswith("}  // namespace") and namespaces:
                namespaces.pop()
            elif (name := re.match(r"(?:struct|class|enum|enum class) ([\w:]+)(?: final)?(?: :.*)? \{", line)) and "" not in namespaces:
                full = "::".join([*namespaces, name.group(1)])
                first = places.setdefault(full, f"{path}:{number}")
                if first != f"{path}:{number}":
                    found.append(f"{path}:{number}: {full} is another type at {first}: rename one, or give its folder a namespace")
    return found


def repository_files():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    return [f for f in out.stdout.decode().split("\n") if f and os.path.exists(os.path.join(ROOT, f))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def read_if_text(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        data = file.read()
    return "" if b"\0" in data else data.decode("utf-8", errors="replace")


def check_repository():
    files = repository_files()
    found = []
    for path in files:
        found.extend(check_stale(path, read_if_text(path)))
        if path.endswith(CODE):
            found.extend(check_code(path, read(path)))
        if path.endswith(".md"):
            found.extend(check_links(path, read(path), lambda p: os.path.exists(os.path.join(ROOT, p))))
    found.extend(check_types({f: read(f) for f in files if f.endswith(CODE) and not f.endswith(LIBRARY_TESTS) and not f.startswith("tests/")}))
    for known in LARGER:
        path, name = known.split(": ")
        if path not in files or name not in {each[1] for each in classes.classes(read(path))}:
            found.append(f"tests/tidy/tidy.py:1: LARGER names {known}, which does not exist")
    cmake_text = "\n".join(read(f) for f in files if f.endswith(("CMakeLists.txt", ".cmake")))
    found.extend(check_listed([f for f in files if f.endswith(".cc")], cmake_text))
    found.extend(check_size("README.md", os.path.getsize(os.path.join(ROOT, "README.md")), README_BYTES_MAX))
    found.extend(check_version(read("CMakeLists.txt"), read("CITATION.cff")))
    return found, len(files)


def check_python(files):
    """What pyflakes says of Python: names that nothing defines, imports that nothing uses."""
    done = subprocess.run(["pyflakes3", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()


def python():
    if not shutil.which("pyflakes3"):
        print("skipped: pyflakes3 is not installed")
        return 77
    with tempfile.NamedTemporaryFile("w", suffix=".py") as wrong:
        wrong.write("import os\nprint(path)\n")
        wrong.flush()
        assert len(check_python([wrong.name])) == 2, check_python([wrong.name])
    files = [f for f in repository_files() if f.endswith(".py")]
    return report(check_python(files), len(files))


def self_test():
    def one(path, text, expected):
        found = check_code(path, text)
        assert any(expected in f for f in found), f"{path}: expected '{expected}' among {found}"

    guard = "#ifndef MOSA_{0}_\n#define MOSA_{0}_\n{1}\n#endif\n"
    one("manager/core/x.h", "int x;\n", "include guard")
    one("manager/core/x.cc", "#include <spdlog/spdlog.h>\n", "only common/base may")
    one("manager/core/x.cc", '#include "manager/store/metadata_store.h"\n', "no such arrow")
    one("client-sai/core/x.cc", '#include "mosa/v1/bulk.pb.h"\n', "generated")
    one("manager/core/x.cc", "std::unordered_map<int, int> m;\n", "unordered")
    one("manager/core/x.cc", "auto t = std::chrono::steady_clock::now();\n", "a clock")
    one("manager/core/x.cc", "const SystemMutexLock lock(mutex);\n", "threads")
    one("storage-node/service/x.cc", '#include "common/base/sync.h"\n', "virtual time")
    one("manager/core/x.cc", "x" * 101 + "\n", "101 columns")
    one("manager/core/x.cc", "\tint x;\n", "a tab")
    one("manager/core/x.cc", "// TO" + "DO later\n", "unfinished")
    one("predictor/run/x.cc", "  x = a ? b()\n        : co_await c();\n", "co_await in a conditional")
    one("predictor/run/x.cc", "  x = a ? b() : co_await c();\n", "co_await in a conditional")
    long_body = "{\n" + "  x([] { y('{'); });  // }\n" * 80 + "}\n"
    for signature in (
        "void F() ",
        "const std::map<int, int>& Of(int a,\n    const B& b) const noexcept ",
        "class A final : public B {\n public:\n  explicit A(int x) : x_(x), y_{x} ",
        "namespace a {\nstruct S {\n  int x = 0;\n  bool operator==(const S&) const ",
        "template <typename T = int>\nauto F(T a = {1}) -> T ",
    ):
        one("manager/core/x.cc", "int x{1};\n" + signature + long_body, "a function of")
    for begin in ("constexpr int kRows[] = ", "namespace a ", "struct A ", "const std::vector<int> rows(3) = "):
        assert not check_function_lengths("manager/core/x.cc", begin + "{\n" + "1,\n" * 80 + "};\n")
    one("manager/core/x.cc", "int x;\n" * 800, "split it")
    methods = "  explicit A(int x) : x_(x) {}\n  std::function<int(int)> f_{nullptr};\n" + "  int F(int a = {1}) const;\n" * 40
    one("manager/core/x.cc", "class A final : public B {\n public:\n" + methods + "};\n", "A has 41 methods and 1 fields")
    fields = "  std::map<int, B> b_ ABSL_GUARDED_BY(mutex_);\n  int c_ = 0, d_ = 0;\n" * 9
    one("manager/core/x.cc", "struct A {\n  int F();\n" + fields + "};\n", "A has 1 methods and 27 fields")
    one("client-sai/sai/impl.h", "struct Impl {\n  int a;\n};\n", "if it shrank")
    small = "  A(const A&) = delete;\n  using X = int(int);\n  static constexpr int kOne = F(1);\n  struct In {\n    int a;\n  };\n  enum class E { kA, kB };\n"
    assert classes.classes("class A {\n" + small * 50 + "};\n")[0][2:] == (0, 0)
    one("manager/core/x.cc", '#include "tests/support/y.h"\n', "nothing includes tests")
    one("manager/core/x.cc", "int x;\n// Of a file: its size.\n", "manager/core/x.cc:2: a comment says who or what first")
    one("manager/core/x.cc", "int x;  // What of it is known.\n", "a comment says who or what first")
    one("manager/core/x.cc", "// ---- files\n//\n// Of a file: its size.\n", "a comment says who or what first")
    assert not check_comments("manager/core/x.cc", ["// A file has one.", "// Of two, the later.", 'f("// Of a file");', "// Often."])
    assert check_links("README.md", "[a](missing.md)", lambda p: False)
    assert check_listed(["a/never_named.cc"], "SOURCES other.cc")
    assert not check_code("manager/core/x.h", guard.format("MANAGER_CORE_X_H", "int x;"))
    assert not check_listed(["a/b.cc"], "SOURCES a/b.cc")
    assert check_stale("a.md", "\nas pa" + "per 003 says") == ["a.md:2: " + STALE[0][1]]
    assert check_stale("a.h", "// which pa" + "per\n// 000 found") == ["a.h:1: " + STALE[0][1]]
    assert check_stale("a.py", "# SP" + "EC section 4") == ["a.py:1: " + STALE[1][1]]
    assert not check_stale("a.md", "the paper of 2003, 0.003 s, a paper 1,000 times")
    assert check_size("README.md", README_BYTES_MAX + 1, README_BYTES_MAX)
    assert not check_size("README.md", README_BYTES_MAX, README_BYTES_MAX)
    assert check_version("project(mosa VERSION 0.2.0 LANGUAGES CXX)", "version: 0.1.0\n")
    assert not check_version("project(mosa VERSION 0.2.0 LANGUAGES CXX)", "title: Mosa\nversion: 0.2.0\n")
    twice = "namespace mosa::{0} {{\nstruct Inode {{\n}};\n}}  // namespace mosa::{0}\n"
    assert check_types({"a/x.h": twice.format("sai"), "b/y.h": twice.format("sai")})
    assert not check_types({"a/x.h": twice.format("sai"), "b/y.h": twice.format("wrap")})
    assert not check_types({"a/x.cc": "namespace {\nclass A final : B {\n", "b/y.cc": "namespace {\nclass A {\n"})
    print("36 passed, 0 failed")


def report(found, count):
    for complaint in found:
        print(complaint)
    print(f"{count} files, {len(found)} complaints")
    return 1 if found else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    if sys.argv[1:] == ["--python"]:
        return python()
    return report(*check_repository())


if __name__ == "__main__":
    sys.exit(main())
