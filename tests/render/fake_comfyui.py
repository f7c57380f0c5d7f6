"""A ComfyUI server without models: its paths, its queue, its events, and ways to fail."""

import base64
import contextlib
import hashlib
import io
import json
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
from PIL import Image


class FakeComfy:
    """Start one on a port; `stop` ends it as a crash does; `start` again on the same port.

    plan     what happens to the prompts, one entry each: "good", "error", "oom", "interrupted",
             "hang" (never ends by itself), "silent" (no events), "empty" (no results)
    """

    def __init__(self, plan=("good",), frames=5, size=(64, 32), port=0):
        self.plan, self.frames, self.size, self.port = list(plan), frames, size, port
        self.prompts, self.uploads, self.freed, self.interrupts = [], {}, [], []
        self.refuse = None
        self.start()

    def start(self):
        self.queue, self.done, self.stopped = {}, {}, threading.Event()
        self.sockets, self.files = [], {}
        fake = self

        class Handler(_Handler):
            comfy = fake

        class Threads(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.http = Threads(("127.0.0.1", self.port), Handler)
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        self.stopped.set()
        self.http.shutdown()
        self.http.server_close()
        self.drop()

    def drop(self):
        """Cut all websockets."""
        for s in self.sockets:
            with contextlib.suppress(OSError):
                s.shutdown(2)
                s.close()
        self.sockets = []

    def send(self, kind, **data):
        text = json.dumps({"type": kind, "data": data}).encode()
        half = len(text) // 2  # in two fragments, with a picture and a ping before
        for piece in (_frame(2, b"\0\0\0\1picture"), _frame(9, b"hello"),
                      _frame(1, text[:half], final=False), _frame(0, text[half:])):  # fmt: skip
            for s in self.sockets:
                with contextlib.suppress(OSError):
                    s.sendall(piece)

    def work(self, prompt_id, nodes):
        """What the server does with a prompt, in a thread."""
        what = self.plan.pop(0) if self.plan else "good"
        stopped, queue, done = self.stopped, self.queue, self.done  # of this life
        sampler = next(n for n, m in nodes.items() if m["class_type"] == "KSampler")
        told = lambda kind, **data: self.send(kind, prompt_id=prompt_id, **data)  # noqa: E731
        for i in range(4):
            time.sleep(0.03)
            if stopped.is_set():
                return
            if what != "silent":
                told("progress", node=sampler, value=i + 1, max=4)
                self.send("progress", prompt_id="another", node=sampler, value=4, max=4)
        while what == "hang" and prompt_id in queue and not stopped.is_set():
            time.sleep(0.02)
        if stopped.is_set():
            return
        interrupted = what == "interrupted" or prompt_id not in queue
        messages = [["execution_start", {}]]
        outputs = {}
        if interrupted:
            messages.append(["execution_interrupted", {"node_id": sampler}])
        elif what in ("error", "oom"):
            name = "torch.OutOfMemoryError" if what == "oom" else "ValueError"
            words = "Allocation on device" if what == "oom" else "mat1 and mat2"
            error = {"node_id": sampler, "exception_type": name, "exception_message": words}
            messages.append(["execution_error", error])
        elif what != "empty":
            outputs = self.results(nodes)
        good = len(messages) == 1
        done[prompt_id] = {
            "outputs": outputs,
            "status": {"completed": good, "status_str": "success" if good else "error",
                       "messages": messages},
        }  # fmt: skip
        queue.pop(prompt_id, None)
        if what != "silent":
            told("execution_success" if good else "execution_error")

    def results(self, nodes):
        """Pictures whose red is the frame's number, green the seed, blue the first frame's red."""
        seed = next(m["inputs"]["seed"] for m in nodes.values() if "seed" in m["inputs"])
        count = next(m["inputs"]["length"] for m in nodes.values() if "length" in m["inputs"])
        first = next((m["inputs"]["image"] for m in nodes.values()
                      if m["class_type"] == "LoadImage"), None)  # fmt: skip
        blue = self.uploads[first][0, 0, 0] if first in self.uploads else 0
        files = []
        for i in range(count):
            picture = np.zeros((self.size[1], self.size[0], 3), np.uint8)
            picture[:] = (i, seed % 256, blue)
            buffer = io.BytesIO()
            Image.fromarray(picture).save(buffer, "PNG")
            name = f"{seed}_{i:05d}_.png"
            self.files[name] = buffer.getvalue()
            files.append({"filename": name, "subfolder": "h3", "type": "output"})
        preview = [{"filename": "x.png", "subfolder": "", "type": "temp"}]
        return {"8": {"images": preview}, "9": {"images": files, "animated": [False]}}


def _frame(code, data, final=True):
    size = len(data)
    head = bytes([code | (128 if final else 0)])
    head += bytes([size]) if size < 126 else bytes([126]) + struct.pack(">H", size)
    return head + data


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, data, status=200):
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        comfy, path = self.comfy, urlsplit(self.path)
        if path.path == "/ws":
            return self.upgrade()
        if path.path == "/system_stats":
            return self.answer({"system": {"comfyui_version": "0.3.75"}})
        if path.path == "/queue":
            running = [[0, p, {}, {}, []] for p in comfy.queue]
            return self.answer({"queue_running": running, "queue_pending": []})
        if path.path.startswith("/history/"):
            prompt_id = path.path.split("/")[-1]
            found = comfy.done.get(prompt_id)
            return self.answer({prompt_id: found} if found else {})
        if path.path == "/view":
            name = parse_qs(path.query)["filename"][0]
            assert parse_qs(path.query)["subfolder"] == ["h3"]
            return self.answer(comfy.files[name])
        return self.answer({}, 404)

    def do_POST(self):
        comfy = self.comfy
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/upload/image":
            return self.answer(self.take_picture(body))
        data = json.loads(body)
        if self.path == "/prompt":
            comfy.prompts.append(data["prompt"])
            if comfy.refuse:
                return self.answer(comfy.refuse, 400)
            prompt_id = data["prompt_id"]
            comfy.queue[prompt_id] = data
            threading.Thread(target=comfy.work, args=(prompt_id, data["prompt"])).start()
            return self.answer({"prompt_id": prompt_id, "number": 1, "node_errors": {}})
        if self.path == "/interrupt":
            comfy.interrupts.append(data.get("prompt_id"))
            comfy.queue.pop(data.get("prompt_id"), None)
        if self.path == "/free":
            comfy.freed.append(data)
        return self.answer({})

    def take_picture(self, body):
        edge = self.headers["Content-Type"].split("boundary=")[1].encode()
        fields = {}
        for part in body.split(b"--" + edge)[1:-1]:
            head, _, data = part.strip(b"\r\n").partition(b"\r\n\r\n")
            name = head.split(b'name="')[1].split(b'"')[0].decode()
            fields[name] = data
            if name == "image":
                file = head.split(b'filename="')[1].split(b'"')[0].decode()
        picture = np.asarray(Image.open(io.BytesIO(fields["image"])))
        folder = fields["subfolder"].decode()
        self.comfy.uploads[f"{folder}/{file}"] = picture
        return {"name": file, "subfolder": folder, "type": "input"}

    def upgrade(self):
        key = self.headers["Sec-WebSocket-Key"]
        magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1((key + magic).encode()).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                            ("Sec-WebSocket-Accept", accept)):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        self.comfy.sockets.append(self.connection)
        self.close_connection = True
        while not self.comfy.stopped.is_set():  # what the client says is of no interest
            try:
                if not self.connection.recv(4096):
                    break
            except OSError:
                break
