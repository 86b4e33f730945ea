"""Native frames have names: stored by the program itself at its end, found by the tool where it was
killed, with file and line where there is debug information; PyTorch's recorder names the same."""

import contextlib
import ctypes.util
import http.server
import os
import re
import shutil
import socket
import subprocess
import threading

import pytest

import support
import traced

SOURCE = support.ROOT / "tests" / "programs" / "named.c"
CALLS = ["inlined", "innermost", "middle", "main"]  # of named.c, innermost first
FOLDED = re.compile(r"[^;\n]+(;[^;\n]+)* [0-9]+")


def line_of(call):
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if f"/* line: {call} */" in line:
            return number
    raise AssertionError(f"named.c has no line for {call}")


def allocation(trace, *options):
    """The first allocation of device memory in a dump with stacks."""
    events = support.dump(trace, "--stacks", *options)
    return next(event for event in events if event["what"] == "alloc")


def named(native):
    """Function names in a list of native frames; frames without a name are left out."""
    found = [re.fullmatch(r"[^!]+!(.+)\+0x[0-9a-f]+", frame) for frame in native]
    return [match[1] for match in found if match]


@pytest.fixture
def copy(library, tool, tmp_path):
    """A copy of tests/programs/named of its own: it may be changed."""
    path = tmp_path / "program" / "named"
    path.parent.mkdir()
    shutil.copy(support.PROGRAMS / "named", path)
    return path


# ---- names ------------------------------------------------------------------------------------


def test_static_functions_are_named(copy, tmp_path):
    run = traced.run(tmp_path / "out", str(copy))
    assert named(allocation(run.trace)["native"])[:3] == CALLS[1:]


def test_names_are_in_the_trace(copy, tmp_path):
    """So that it can be read where the program's files are not."""
    run = traced.run(tmp_path / "out", str(copy))
    copy.unlink()
    assert named(allocation(run.trace)["native"])[:3] == CALLS[1:]
    assert "innermost (named)" in support.memtrace("report", run.trace)
    assert "innermost (named)" in run.stderr


def test_after_a_kill_the_tool_finds_the_names(copy, tmp_path):
    run = traced.run(tmp_path / "out", str(copy), "kill")
    assert run.status == -9
    assert named(allocation(run.trace)["native"])[:3] == CALLS[1:]
    assert "innermost (named)" in support.memtrace("report", "--by", "stack", run.trace)


def test_another_build_names_nothing(copy, tmp_path):
    run = traced.run(tmp_path / "out", str(copy), "kill")
    shutil.copy(support.PROGRAMS / "threads", copy)
    native = allocation(run.trace)["native"]
    assert native[0].startswith("named+0x") and not named(native[:2])
    copy.unlink()
    os.mkfifo(copy)  # must not be waited for
    assert allocation(run.trace)["native"] == native


def test_a_stack_that_was_cut_says_so(copy, tmp_path):
    whole = allocation(traced.run(tmp_path / "whole", str(copy)).trace)
    assert "native_truncated" not in whole and "truncated" not in whole
    cut = allocation(traced.run(tmp_path / "cut", str(copy), MEMTRACE_STACK_DEPTH="2").trace)
    assert cut["native_truncated"] is True and "truncated" not in cut
    assert cut["native"] == whole["native"][:2]


def test_a_python_stack_that_was_cut_says_so(library, tool, tmp_path):
    script = tmp_path / "deep.py"
    script.write_text(
        "import ctypes\n"
        "def below(n):\n"
        "    return below(n - 1) if n else cuda.cuMemAlloc_v2(ctypes.byref(address), 4096)\n"
        "cuda, address = ctypes.CDLL('libcuda.so.1'), ctypes.c_uint64()\n"
        "cuda.cuInit(0)\n"
        "below(6)\n"
    )
    for depth, expected in ("128", 8), ("8", 8), ("7", 7):
        out = tmp_path / depth
        event = allocation(
            traced.run(out, support.PYTHON, script, MEMTRACE_STACK_DEPTH=depth).trace
        )
        assert len(event["python"]) == expected
        assert event.get("truncated", False) is (expected < 8)


# ---- lines ------------------------------------------------------------------------------------


def test_lines_and_inlined_functions_come_from_debug_information(copy, tmp_path):
    run = traced.run(tmp_path / "out", str(copy))
    places = allocation(run.trace, "--lines")["native_places"]
    assert [place.split()[-1] for place in places[0]] == ["take", "inlined", "innermost"]
    found = [place for frame in places for place in frame]
    for call in CALLS:
        wanted = re.compile(rf".*named\.c:{line_of(call)} {call}")
        assert any(wanted.fullmatch(place) for place in found), (call, found)
    assert "native_places" not in allocation(run.trace)
    by_stack = support.memtrace("report", "--by", "stack", "--lines", run.trace)
    assert re.search(rf"named\.c:{line_of('middle')} middle\n", by_stack)
    assert "take.h:" in support.memtrace("flame", "--lines", run.trace)


def test_nothing_is_fetched_unless_asked(copy, tmp_path):
    run = traced.run(tmp_path / "out", str(copy))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        env = support.environment(preload=False, DEBUGINFOD_URLS=url)
        result = support.run([support.TOOL, "report", "--lines", run.trace], env)
        assert result.returncode == 0
        with pytest.raises(TimeoutError):
            server.accept()


class Debuginfod(http.server.BaseHTTPRequestHandler):
    """Serves the files of `server.files`, {path: bytes}, and keeps what was asked for."""

    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        self.send_response(200 if content else 404)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(files):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Debuginfod) as server:
        server.files, server.asked = files, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_debug_information_is_fetched_when_asked(copy, tmp_path):
    if not ctypes.util.find_library("debuginfod"):
        pytest.skip("there is no libdebuginfod")
    if not shutil.which("objcopy"):
        pytest.skip("there is no objcopy")
    debug = tmp_path / "named.debug"
    subprocess.run(["objcopy", "--only-keep-debug", copy, debug], check=True)
    subprocess.run(["objcopy", "--strip-debug", copy], check=True)
    notes = subprocess.run(["readelf", "-n", copy], check=True, stdout=subprocess.PIPE, text=True)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)[1]
    run = traced.run(tmp_path / "out", str(copy))
    assert "named.c:" not in support.memtrace("report", "--by", "stack", "--lines", run.trace)
    path = f"/buildid/{build_id}/debuginfo"
    with serving({path: debug.read_bytes()}) as server:
        env = support.environment(
            preload=False,
            DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_address[1]}/",
            DEBUGINFOD_CACHE_PATH=tmp_path / "cache",
        )
        command = [support.TOOL, "report", "--by", "stack", "--lines", "--debuginfod", run.trace]
        result = support.run(command, env)
    assert result.returncode == 0 and path in server.asked
    assert re.search(rf"named\.c:{line_of('middle')} middle\n", result.stdout)


# ---- C++ --------------------------------------------------------------------------------------


def test_cxx_names_are_short(library, tool, tmp_path):
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    program = tmp_path / "templates"
    source = SOURCE.with_name("templates.cpp")
    command = ["g++", "-O1", "-g", "-o", program, source, f"-L{traced.FAST}", "-l:libcuda.so.1"]
    subprocess.run(list(map(str, command)), check=True, timeout=support.TIMEOUT_S)
    run = traced.run(tmp_path / "out", str(program))
    assert named(allocation(run.trace)["native"])[:5] == [
        "trainer::(anonymous namespace)::Tensor<...>::Tensor",
        "trainer::Model::operator()::{lambda}",
        "trainer::apply<...>",
        "trainer::Model::operator()",
        "main",
    ]
    whole = support.memtrace("report", "--by", "stack", "--full", run.trace)
    assert "Tensor<float, 2>::Tensor(unsigned long)" in whole
    folded = support.memtrace("report", "--by", "stack", run.trace)
    assert "Tensor<...>::Tensor (templates)" in folded and "float" not in folded


# ---- flame ------------------------------------------------------------------------------------


def folded(*arguments):
    """The lines of `memtrace flame`: [(frames, bytes)], checked for their form."""
    lines = support.memtrace("flame", *arguments).splitlines()
    assert all(FOLDED.fullmatch(line) for line in lines), lines
    parts = [line.rsplit(" ", 1) for line in lines]
    return [(frames.split(";"), int(count)) for frames, count in parts]


def test_flame_lines_run_from_main_in(copy, tmp_path):
    run = traced.run(tmp_path / "out", str(copy))
    ((frames, count),) = folded(run.trace)
    assert frames[-3:] == ["main", "middle", "innermost"] and count == 3 << 20
    target = tmp_path / "out.folded"
    assert support.memtrace("flame", "-o", target, run.trace) == ""
    assert target.read_text().strip() == ";".join(frames) + f" {3 << 20}"
    script = shutil.which("flamegraph.pl") or shutil.which("flamegraph")
    if script:
        svg = subprocess.run([script, target], capture_output=True, text=True, check=True).stdout
        assert "innermost" in svg


def test_flame_says_what_it_cannot_show(copy, tmp_path):
    run = traced.run(tmp_path / "out", str(copy))
    support.memtrace("flame", "--at", "oom", run.trace, status=1)
    support.memtrace("flame", "--device", "7", run.trace, status=1)
    support.memtrace("flame", "--at", "never", run.trace, status=2)
    support.memtrace("flame", "--device", "x", run.trace, status=2)
    support.memtrace("flame", "-o", tmp_path / "no" / "where", run.trace, status=3)


# ---- PyTorch ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch_run(library, tool, simgpu, tmp_path_factory):
    return support.run_case("native_names", tmp_path_factory.mktemp("torch"))


def plain(name):
    """at::native::(anonymous namespace)::f<int>(int) → at::native::(anonymous namespace)::f"""
    name = name.replace("(anonymous namespace)", "@")
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)(?: const)?", "", name)) != name:
        name = shorter
    return name.split(" ")[-1].replace("@", "(anonymous namespace)")


def is_subsequence(wanted, found):
    rest = iter(found)
    return all(any(name == other for other in rest) for name in wanted)


def test_pytorch_names_the_same_functions(torch_run):
    """Call by call: what PyTorch's recorder names of ATen and autograd, in its order."""
    theirs = torch_run.truths["native_names.frames"]
    events = support.dump(torch_run.trace, "--stacks")
    ours = [event["native"] for event in events if event["what"] == "block_alloc"]
    assert len(theirs) == len(ours) and len(ours) > 20
    compared = 0
    for names, native in zip(theirs, ours):
        wanted = [plain(name) for name in names if re.search(r"\b(at|torch::autograd)::", name)]
        wanted = [name for name in wanted if re.match(r"at::|torch::autograd::generated", name)]
        found = [re.sub(r"<\.\.\.>", "", name) for name in named(native)]
        assert is_subsequence(wanted, found), f"{wanted}\nis not all in\n{found}"
        compared += len(wanted)
    assert compared > 100


def test_backward_nodes_stand_for_autograds_thread(torch_run):
    by_line = support.memtrace("report", "--by", "line", "--full", torch_run.trace)
    assert "(backward) " in by_line and "autograd thread" not in by_line
    assert "(backward) MmBackward0" in support.memtrace("dump", torch_run.trace)


def test_mixed_stacks_begin_with_the_users_line(torch_run):
    text = support.memtrace("report", "--by", "stack", torch_run.trace)
    users_own = ("native_names.py:", "cases/native_names.py:", "(backward) ")
    for stack in re.split(r"\n  (?=\S)", text)[1:]:
        assert stack.splitlines()[1].strip().startswith(users_own), stack
    assert "in aten::" in text and re.search(r"[0-9]+ frames? in torch", text)


def test_flame_adds_up_to_what_was_allocated(torch_run):
    device = support.report(torch_run.trace)["devices"][0]
    peak, total = folded(torch_run.trace), folded("--at", "total", torch_run.trace)
    assert sum(count for _, count in peak) == device["allocated"]["peak_bytes"]
    assert sum(count for _, count in total) == device["allocated"]["total_bytes"]
    python = [frames for frames, _ in peak if "native_names.py" in frames[0]]
    assert python and all("::" in frames[-1] for frames in python)
