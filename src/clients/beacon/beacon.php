<?php

/**
 * Counts page views and events of a website from its server. No dependencies; PHP 7.4 or later.
 *
 *     require_once 'beacon.php';
 *     use Signalbox\Beacon;
 *
 *     $beacon = new Beacon([
 *         'secret' => getenv('SITE_SECRET'),
 *         'onError' => fn ($error) => error_log($error->getMessage()),
 *     ]);
 *
 *     $beacon->pageview(Beacon::fromRequest());
 *     $beacon->event('signup', Beacon::fromRequest() + ['props' => ['plan' => 'pro']]);
 *
 * Recording takes no time and throws nothing. Events are sent when the request is over and, under FPM and LiteSpeed,
 * its visitor has the answer: up to 100 at once, and again until the server has them, for at most 3 seconds. Every
 * event has an id, so that it counts once however often it is sent, and the time at which it was recorded. A process
 * that runs for longer sends whenever 100 events wait, and when it calls `flush()`; of a server that stays away its
 * queue keeps the latest 10,000 events. `$beacon->dropped` counts what was given up.
 */

declare(strict_types=1);

namespace Signalbox;

/** Events that will not be counted, and why. */
final class BeaconError extends \RuntimeException
{
    /** @var list<array> */
    public array $events;

    public function __construct(string $message, array $events)
    {
        parent::__construct($message);
        $this->events = $events;
    }
}

/**
 * Delivers events to one site.
 *
 * Fields of an event: url (absolute, or a path that starts with /), ip and userAgent of the visitor, referrer, country
 * (ISO-3166 alpha-2), visitor (a stable key of your own, already anonymous, instead of ip and userAgent), props (a flat
 * map), timestamp (epoch milliseconds, or ISO-8601 with an offset; default: now), id (your own, of at most 64
 * characters; the same id counts once in 24 hours).
 */
final class Beacon
{
    /** The server that this file came from. */
    private const SERVED_FROM = 'http://127.0.0.1:8080';

    /** The most events of one request. */
    private const BATCH_MAX = 100;

    private const ATTEMPT_SECONDS = 3.0;

    /** The pause after the first failure; it doubles with every further one. */
    private const PAUSE_MIN_SECONDS = 0.5;
    private const PAUSE_MAX_SECONDS = 30.0;

    /** The server knows an id for 24 hours: an event sent again later could count twice. */
    private const GIVE_UP_SECONDS = 23 * 60 * 60;

    /** The number of events given up: the queue was full, or the server away for too long. */
    public int $dropped = 0;

    private string $endpoint;
    private string $secret;
    /** @var callable|null */
    private $onError;
    private int $queueMax;
    private float $closeSeconds;

    /** @var list<array{json: string, seconds: float}> the oldest first; the first of them may be on their way */
    private array $waiting = [];
    private int $failures = 0;
    private string $lastFailure = 'no answer so far';
    /** Until then the server is left alone. */
    private float $pausedUntil = 0.0;
    private bool $isFull = false;
    private bool $isClosed = false;

    /**
     * @param array{secret: string, url?: string, onError?: callable, queueMax?: int, closeSeconds?: float} $options
     *   secret        the site's secret (ssk_…)
     *   url           the server's address
     *   onError       called with a BeaconError about events that will not be counted
     *   queueMax      events kept while the server is away
     *   closeSeconds  how long the end of the request tries to deliver what waits
     */
    public function __construct(array $options)
    {
        $this->endpoint = rtrim((string) ($options['url'] ?? self::SERVED_FROM), '/') . '/api/v1/collect';
        $this->secret = trim((string) ($options['secret'] ?? ''));
        $this->onError = $options['onError'] ?? null;
        $this->queueMax = (int) ($options['queueMax'] ?? 10000);
        $this->closeSeconds = (float) ($options['closeSeconds'] ?? 3.0);
        // A function registered at the end runs after all others, which may still write to the visitor.
        register_shutdown_function(function (): void {
            register_shutdown_function(function (): void {
                $this->finishRequest();
                $this->close();
            });
        });
    }

    public function pageview(array $event): void
    {
        $this->record('pageview', $event);
    }

    public function event(string $name, array $event): void
    {
        $this->record($name, $event);
    }

    /** Sends what is recorded, for at most so many seconds; answers whether nothing waits any more. */
    public function flush(?float $withinSeconds = null): bool
    {
        $deadline = self::now() + ($withinSeconds ?? $this->closeSeconds);
        // A pause after failures is for the server's sake; a caller that waits may ask it once more.
        $this->failures = 0;
        $this->pausedUntil = 0.0;
        while ($this->waiting !== []) {
            $remaining = $deadline - self::now();
            $pause = $this->pausedUntil - self::now();
            if ($remaining <= 0 || $pause >= $remaining) {
                return false;
            }
            if ($pause > 0) {
                usleep((int) ($pause * 1e6));
            }
            $this->attempt($deadline - self::now());
        }
        return true;
    }

    /** Sends what waits, for at most closeSeconds, and gives up the rest. Nothing can be recorded afterwards. */
    public function close(): void
    {
        $this->isClosed = true;
        if ($this->flush()) {
            return;
        }
        $left = $this->waiting;
        $this->waiting = [];
        $this->dropped += count($left);
        $this->lose("not delivered in time ({$this->lastFailure})", $left);
    }

    /** This request's facts about a visit. Behind a proxy the IP address is the proxy's: pass your own `ip` then. */
    public static function fromRequest(?array $server = null): array
    {
        $server = $server ?? $_SERVER;
        $isSecure = !in_array(strtolower($server['HTTPS'] ?? ''), ['', 'off'], true);
        $path = $server['REQUEST_URI'] ?? '/';
        $url = isset($server['HTTP_HOST']) ? ($isSecure ? 'https' : 'http') . "://{$server['HTTP_HOST']}$path" : $path;
        return array_filter([
            'url' => substr($url, 0, 4096),
            'ip' => $server['REMOTE_ADDR'] ?? '',
            'userAgent' => substr($server['HTTP_USER_AGENT'] ?? '', 0, 1024),
            'referrer' => substr($server['HTTP_REFERER'] ?? '', 0, 4096),
        ]);
    }

    private function record(string $name, array $event): void
    {
        try {
            if ($this->isClosed) {
                throw new \LogicException('recorded after close()');
            }
            $event['name'] = $name;
            $event['id'] = $event['id'] ?? bin2hex(random_bytes(16));
            $event['timestamp'] = $event['timestamp'] ?? (int) (microtime(true) * 1000);
            if (isset($event['props'])) {
                $event['props'] = (object) $event['props']; // an empty one too
            }
            // As text: later changes by the caller must not change the event.
            $json = json_encode($event, JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES);
            $this->waiting[] = ['json' => $json, 'seconds' => self::now()];
            if (count($this->waiting) > $this->queueMax) {
                $this->dropOldest();
            }
            if (count($this->waiting) >= self::BATCH_MAX && self::now() >= $this->pausedUntil) {
                $this->attempt(self::ATTEMPT_SECONDS);
            }
        } catch (\Throwable $error) {
            $this->report("not recorded: {$error->getMessage()}", [$event]);
        }
    }

    /** An outage is reported once; the count tells the rest. */
    private function dropOldest(): void
    {
        $oldest = array_shift($this->waiting);
        $this->dropped++;
        if (!$this->isFull) {
            $this->lose("the queue is full ({$this->lastFailure})", [$oldest]);
        }
        $this->isFull = true;
    }

    /** Sends the oldest events. Unsent ones stay at the head, and the server is left alone for a pause. */
    private function attempt(float $withinSeconds): void
    {
        $oldest = self::now() - self::GIVE_UP_SECONDS;
        $before = count($this->waiting);
        $this->waiting = array_values(array_filter($this->waiting, fn ($recorded) => $recorded['seconds'] > $oldest));
        $this->dropped += $before - count($this->waiting);
        $batch = array_slice($this->waiting, 0, self::BATCH_MAX);

        [$status, $retryAfter, $text] = $this->post($batch, min($withinSeconds, self::ATTEMPT_SECONDS));
        if ($status === 429 || $status >= 500) {
            $this->lastFailure = "the server answered $status";
        }
        $isSettled = $status !== 0 && $status !== 429 && $status < 500;
        $again = $isSettled ? $this->settle($batch, $status, $text) : $batch;
        $this->waiting = array_merge($again, array_slice($this->waiting, count($batch)));
        if ($isSettled) {
            $this->failures = 0;
            $this->isFull = false;
        }
        if ($again === []) {
            return;
        }
        // A random part of the pause: servers that failed together must not come back together.
        $longest = min(self::PAUSE_MAX_SECONDS, self::PAUSE_MIN_SECONDS * 2 ** min($this->failures, 10));
        $this->failures++;
        $this->pausedUntil = self::now() + $retryAfter + $longest * mt_rand() / mt_getrandmax();
    }

    /** @return array{int, int, string} status (0: no answer), the Retry-After in seconds, and the text of the answer */
    private function post(array $batch, float $withinSeconds): array
    {
        $context = stream_context_create(['http' => [
            'method' => 'POST',
            'header' => ["Authorization: Bearer {$this->secret}", 'Content-Type: application/json'],
            'content' => '[' . implode(',', array_column($batch, 'json')) . ']',
            'timeout' => max($withinSeconds, 0.1),
            'protocol_version' => 1.1,
            'ignore_errors' => true,
            // Following a redirect would make a GET of it, and hand the secret to wherever it leads.
            'follow_location' => 0,
        ]]);
        // The host application's handler may make an exception of every warning.
        set_error_handler(function (int $_, string $message): bool {
            $this->lastFailure = $message;
            return true;
        });
        try {
            $stream = fopen($this->endpoint, 'rb', false, $context);
            if ($stream === false) {
                return [0, 0, ''];
            }
            $head = implode("\n", stream_get_meta_data($stream)['wrapper_data'] ?? []);
            $text = stream_get_contents($stream);
            fclose($stream);
        } catch (\Throwable $error) {
            $this->lastFailure = $error->getMessage();
            return [0, 0, ''];
        } finally {
            restore_error_handler();
        }
        preg_match_all('~^HTTP/\S+ (\d{3})~m', $head, $statuses);
        preg_match('~^Retry-After: *(\d{1,6})\s*$~mi', $head, $retryAfter);
        return [(int) end($statuses[1]), (int) ($retryAfter[1] ?? 0), (string) $text];
    }

    /** Takes the server's word for each event: counted, counted before, a bot's, or wrong in some field. */
    private function settle(array $batch, int $status, string $text): array
    {
        $answer = json_decode($text, true);
        if (!is_array($answer['results'] ?? null)) {
            if ($status !== 202) {
                $this->lose("$status: " . ($answer['error'] ?? 'not a collect endpoint'), $batch);
            }
            return [];
        }
        $again = [];
        foreach ($answer['results'] as $result) {
            $error = $result['error'] ?? '';
            $recorded = $batch[$result['index']];
            if (self::endsWith($error, 'in the future')) {
                // This machine's clock is ahead of the server's, whose own will do.
                $event = json_decode($recorded['json']);
                unset($event->timestamp);
                $again[] = ['json' => json_encode($event)] + $recorded;
            } elseif (self::endsWith($error, 'send it again')) {
                $again[] = $recorded;
            } elseif ($error !== '') {
                $this->lose($error, [$recorded]);
            }
        }
        return $again;
    }

    private function lose(string $message, array $lost): void
    {
        $this->report($message, array_map(fn ($recorded) => json_decode($recorded['json'], true), $lost));
    }

    private function report(string $message, array $events): void
    {
        try {
            if ($this->onError !== null) {
                ($this->onError)(new BeaconError($message, $events));
            }
        } catch (\Throwable $error) {
            // The receiver of errors has failed itself, and there is no other.
        }
    }

    /** The visitor has the answer, and may open the next page, before anything is sent from here. */
    private function finishRequest(): void
    {
        if ($this->waiting === []) {
            return;
        }
        if (function_exists('session_status') && session_status() === PHP_SESSION_ACTIVE) {
            session_write_close();
        }
        foreach (['fastcgi_finish_request', 'litespeed_finish_request'] as $finish) {
            if (function_exists($finish)) {
                $finish();
                return;
            }
        }
    }

    /** Seconds by the monotonic clock. */
    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }

    private static function endsWith(string $text, string $end): bool
    {
        return substr($text, -strlen($end)) === $end;
    }
}
