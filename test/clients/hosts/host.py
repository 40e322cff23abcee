"""An application of Python that has the client in it and does what it is told, a line of JSON a time (see ClientHost.ts)."""

import importlib.util
import json
import os
import sys
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

spec = importlib.util.spec_from_file_location("beacon", sys.argv[1])
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)

beacon = None
errors = []


def make(secret, url=None, delaySeconds=0.5, queueMax=10_000, closeSeconds=5.0, listens="well"):
    global beacon

    def on_error(error):
        errors.append({"message": str(error), "urls": [event.get("url", "") for event in error.events]})
        if listens == "badly":
            raise ValueError("a listener's own mistake")

    given = {} if url is None else {"url": url}
    beacon = client.Beacon(
        secret, on_error=on_error, delay=delaySeconds, queue_max=queueMax, close_timeout=closeSeconds, **given
    )


def record(events):
    for event in events:
        event = dict(event)
        name = event.pop("name", "pageview")
        if "userAgent" in event:
            event["user_agent"] = event.pop("userAgent")
        if name == "pageview":
            beacon.pageview(**event)
        else:
            beacon.event(name, **event)


def spoil():
    circular = {}
    circular["self"] = circular
    for props in (circular, {"n": float("nan")}, {"n": object()}, {"n": b"bytes"}):
        beacon.pageview(url="/spoiled", props=props)
    beacon.event(None, url="/spoiled", props=object())


def fork():
    child = os.fork()
    if child == 0:
        beacon.pageview(url="/child", visitor="v")
        beacon.close()
        os._exit(0)
    return os.waitpid(child, 0)[1]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def serve():
    def application(environ, start_response):
        beacon.pageview(**client.from_wsgi(environ))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"served"]

    server = make_server("127.0.0.1", 0, application, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def asgi(scope):
    scope["headers"] = [(name.encode(), value.encode()) for name, value in scope["headers"]]
    scope["query_string"] = scope["query_string"].encode()
    return client.from_asgi(scope)


def told():
    known = {"dropped": beacon.dropped, "errors": errors[:]}
    errors.clear()
    return known


commands = {
    "make": make,
    "record": record,
    "spoil": spoil,
    "fork": fork,
    "flush": lambda seconds: beacon.flush(seconds),
    "close": lambda: beacon.close(),
    "told": told,
    "serve": serve,
    "asgi": asgi,
}

for line in sys.stdin:
    given = json.loads(line)
    does = given.pop("does")
    print(json.dumps({"answer": commands[does](**given)}), flush=True)
