"""Counts page views and events of a website from its server. No dependencies; Python 3.8 or later.

    from beacon import Beacon, from_wsgi

    beacon = Beacon(secret=os.environ["SITE_SECRET"], on_error=logging.warning)

    beacon.pageview(**from_wsgi(environ))
    beacon.event("signup", **from_wsgi(environ), props={"plan": "pro"})

    beacon.close()  # or leave it to the end of the process

Recording takes no time and raises nothing. A thread sends the events half a second later, up to 100 at once, and again
until the server has them: every event has an id, so that it counts once however often it is sent, and the time at which
it was recorded. Of a server that stays away the queue keeps the latest 10,000 events; `dropped` counts what was given
up. At its end a process is held up for at most 5 seconds. After a fork, the child has a queue of its own. A process
that ends by `os._exit`, as those of `multiprocessing` do, has to call `close()`.
"""

import atexit
import collections
import json
import os
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import weakref
from wsgiref.util import request_uri

SERVED_FROM = "http://127.0.0.1:8080"  # the server that this file came from

BATCH_MAX = 100  # what one request may carry
ATTEMPT_SECONDS = 10.0
PAUSE_MIN_SECONDS = 0.5  # after the first failure; it doubles with every further one
PAUSE_MAX_SECONDS = 30.0

# The server knows an id for 24 hours: an event sent again later could count twice.
GIVE_UP_SECONDS = 23 * 60 * 60

# An event as it is sent, and the time of its recording by the monotonic clock.
_Recorded = collections.namedtuple("_Recorded", "json seconds")


class BeaconError(Exception):
    """Events that will not be counted, and why."""

    def __init__(self, message, events):
        super().__init__(message)
        self.events = events


class Beacon:
    """Delivers events to one site.

    secret         the site's secret (ssk_…)
    url            the server's address
    on_error       called with a BeaconError about events that will not be counted
    delay          seconds that an event waits for others to share its request
    queue_max      events kept while the server is away
    close_timeout  seconds for which close() tries to deliver what waits

    Fields of an event: url (absolute, or a path that starts with /), ip and user_agent of the visitor, referrer,
    country (ISO-3166 alpha-2), visitor (a stable key of your own, already anonymous, instead of ip and user_agent),
    props (a flat dict), timestamp (epoch milliseconds, or ISO-8601 with an offset; default: now), id (your own, of at
    most 64 characters; the same id counts once in 24 hours).
    """

    def __init__(self, secret, url=SERVED_FROM, on_error=None, delay=0.5, queue_max=10_000, close_timeout=5.0):
        self.dropped = 0  # events given up: the queue was full, or the server away for too long
        self._endpoint = str(url).rstrip("/") + "/api/v1/collect"
        self._secret = secret
        self._on_error = on_error
        self._delay = delay
        self._queue_max = queue_max
        self._close_timeout = close_timeout
        self._closed = False
        self._start_empty()
        _beacons.add(self)
        atexit.register(self.close)

    def _start_empty(self):
        """The state of a new process, which has no thread, and a lock that nobody holds."""
        self._changed = threading.Condition()
        self._waiting = collections.deque()  # what is recorded and not yet on its way, the oldest first
        self._batch = []  # what is on its way, until the server has answered for it
        self._thread = None
        self._hurried = False  # the next pause, or the one going on, ends at once
        self._full = False
        self._failures = 0
        self._last_failure = "no answer so far"

    def pageview(self, **fields):
        self._record("pageview", fields)

    def event(self, name, **fields):
        self._record(name, fields)

    def flush(self, timeout=None):
        """Sends what is recorded now; answers whether nothing waits any more."""
        with self._changed:
            self._hurry()
            return self._changed.wait_for(self._is_idle, self._close_timeout if timeout is None else timeout)

    def close(self):
        """Sends what waits, for at most close_timeout, and gives up the rest. Nothing can be recorded afterwards."""
        atexit.unregister(self.close)
        with self._changed:
            self._closed = True
            self._hurry()
            self._changed.wait_for(self._is_idle, self._close_timeout)
            left = [*self._batch, *self._waiting]
            self._batch = []
            self._waiting.clear()
            self.dropped += len(left)
            self._hurry()
        if left:
            self._lose(f"not delivered in time ({self._last_failure})", left)

    def _is_idle(self):
        return not self._waiting and not self._batch

    def _hurry(self):
        # A pause after failures is for the server's sake; a caller that waits may ask it once more.
        self._failures = 0
        self._hurried = True
        self._changed.notify_all()

    def _record(self, name, fields):
        try:
            event = {key: value for key, value in fields.items() if value is not None}
            if "user_agent" in event:
                event["userAgent"] = event.pop("user_agent")
            event["name"] = name
            event.setdefault("id", str(uuid.uuid4()))
            event.setdefault("timestamp", int(time.time() * 1000))
            # As text: later changes by the caller must not change the event. NaN is no JSON and would spoil the batch.
            self._enqueue(_Recorded(json.dumps(event, allow_nan=False), time.monotonic()))
        except Exception as error:  # no error may reach the host application
            self._report(f"not recorded: {error}", [fields])

    def _enqueue(self, recorded):
        lost = []
        with self._changed:
            if self._closed:
                raise RuntimeError("recorded after close()")
            self._waiting.append(recorded)
            if len(self._waiting) > self._queue_max:
                oldest = self._waiting.popleft()
                self.dropped += 1
                # An outage is reported once; the count tells the rest.
                lost = [] if self._full else [oldest]
                self._full = True
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._deliver, name="beacon", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        if lost:
            self._lose(f"the queue is full ({self._last_failure})", lost)

    def _deliver(self):
        """The thread: batch after batch, until the beacon is closed and nothing waits."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or not self._is_idle())
                if self._is_idle():
                    return
                if not self._batch:
                    self._pause(self._delay, lambda: len(self._waiting) >= BATCH_MAX)
                    self._batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                self._drop_too_old()
                batch = self._batch
            again, wait = self._attempt(batch) if batch else ([], 0)
            with self._changed:
                if self._batch is batch:  # else close() has given it up meanwhile
                    self._batch = again
                if self._batch:
                    # A random part of the pause: servers that failed together must not come back together.
                    longest = min(PAUSE_MAX_SECONDS, PAUSE_MIN_SECONDS * 2 ** min(self._failures, 10))
                    self._failures += 1
                    self._pause(wait + random.random() * longest)
                else:
                    self._failures = 0
                    self._full = False
                self._changed.notify_all()

    def _pause(self, seconds, is_over=lambda: False):
        self._changed.wait_for(lambda: self._hurried or is_over(), seconds)
        self._hurried = False

    def _drop_too_old(self):
        oldest = time.monotonic() - GIVE_UP_SECONDS
        young = [recorded for recorded in self._batch if recorded.seconds > oldest]
        self.dropped += len(self._batch) - len(young)
        self._batch = young

    def _attempt(self, batch):
        """Sends the batch; answers what of it is to be sent again, and how many seconds the server asks to wait."""
        try:
            body = "[" + ",".join(recorded.json for recorded in batch) + "]"
            headers = {"Authorization": f"Bearer {self._secret}", "Content-Type": "application/json"}
            request = urllib.request.Request(self._endpoint, body.encode(), headers)
            try:
                response = _opener.open(request, timeout=ATTEMPT_SECONDS)
            except urllib.error.HTTPError as error:
                response = error  # any status but 2xx, which is an answer too
            with response:
                status, text, retry_after = response.code, response.read(), response.headers.get("Retry-After", "")
            if status == 429 or status >= 500:
                self._last_failure = f"the server answered {status}"
                return batch, int(retry_after) if retry_after.isdecimal() else 0
            return self._settle(batch, status, text), 0
        except Exception as error:  # of the network, of the operating system, of HTTP: all mean "not now"
            self._last_failure = str(error)
            return batch, 0

    def _settle(self, batch, status, text):
        """Takes the server's word for each event: counted, counted before, a bot's, or wrong in some field."""
        answer = _parsed(text)
        if not isinstance(answer.get("results"), list):
            if status != 202:
                self._lose(f"{status}: {answer.get('error', 'not a collect endpoint')}", batch)
            return []
        again = []
        for result in answer["results"]:
            error, recorded = result.get("error"), batch[result["index"]]
            if error is None:
                continue
            if error.endswith("in the future"):
                again.append(_without_timestamp(recorded))
            elif error.endswith("send it again"):
                again.append(recorded)
            else:
                self._lose(error, [recorded])
        return again

    def _lose(self, message, lost):
        self._report(message, [json.loads(recorded.json) for recorded in lost])

    def _report(self, message, events):
        if self._on_error is None:
            return
        try:
            self._on_error(BeaconError(message, events))
        except Exception:
            pass  # the receiver of errors has failed itself, and there is no other


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Following a redirect would make a GET of it, and hand the secret to wherever it leads."""

    def redirect_request(self, *_):
        return None


_opener = urllib.request.build_opener(_NoRedirects)

_beacons = weakref.WeakSet()


def _after_fork():
    # Waiting events are the parent's to send.
    for beacon in list(_beacons):
        beacon._start_empty()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _parsed(text):
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {}


def _without_timestamp(recorded):
    """This machine's clock is ahead of the server's, whose own will do."""
    event = json.loads(recorded.json)
    event.pop("timestamp", None)
    return recorded._replace(json=json.dumps(event))


def from_wsgi(environ):
    """What a WSGI environ (Flask: request.environ, Django: request.META) tells of a visit.

    Behind a proxy the IP address is the proxy's, unless the framework knows better: set "ip" of the result then.
    """
    try:
        url = request_uri(environ)
    except KeyError:
        url = environ.get("PATH_INFO") or "/"
    fields = {
        "url": url[:4096],
        "ip": environ.get("REMOTE_ADDR"),
        "user_agent": environ.get("HTTP_USER_AGENT", "")[:1024],
        "referrer": environ.get("HTTP_REFERER", "")[:4096],
    }
    return {name: value for name, value in fields.items() if value}


def from_asgi(scope):
    """What an ASGI scope (Starlette and FastAPI: request.scope) tells of a visit. As to proxies, see from_wsgi."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", [])}
    path = (scope.get("raw_path") or urllib.parse.quote(scope.get("path", "/")).encode()).decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    url = path + ("?" + query if query else "")
    if "host" in headers:
        url = f"{scope.get('scheme', 'http')}://{headers['host']}{url}"
    fields = {
        "url": url[:4096],
        "ip": (scope.get("client") or [None])[0],
        "user_agent": headers.get("user-agent", "")[:1024],
        "referrer": headers.get("referer", "")[:4096],
    }
    return {name: value for name, value in fields.items() if value}
