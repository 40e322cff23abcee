<?php

// An application of PHP with the client in it, controlled by a line of JSON a time (see ClientHost.ts). Under PHP's own
// web server it is a page that counts its visitors.

declare(strict_types=1);

use Signalbox\Beacon;

// As frameworks do: every warning is an exception.
set_error_handler(function (int $level, string $message): bool {
    throw new ErrorException($message, 0, $level);
});

if (PHP_SAPI === 'cli-server') {
    require_once getenv('CLIENT');
    $beacon = new Beacon(['secret' => getenv('SECRET')]);
    $beacon->pageview(Beacon::fromRequest());
    echo 'served';
    return;
}

require_once $argv[1];

$beacon = null;
$errors = [];

$commands = [
    'make' => function (array $given) use (&$beacon, &$errors) {
        $listens = $given['listens'] ?? 'well';
        unset($given['listens'], $given['delaySeconds']);
        $given['onError'] = function (Signalbox\BeaconError $error) use (&$errors, $listens) {
            $urls = array_map(fn ($event) => $event['url'] ?? '', $error->events);
            $errors[] = ['message' => $error->getMessage(), 'urls' => $urls];
            if ($listens === 'badly') {
                throw new LogicException("a listener's own mistake");
            }
        };
        $beacon = new Beacon($given);
    },
    'record' => function (array $given) use (&$beacon) {
        foreach ($given['events'] as $event) {
            $name = $event['name'] ?? 'pageview';
            unset($event['name']);
            $name === 'pageview' ? $beacon->pageview($event) : $beacon->event($name, $event);
        }
    },
    'spoil' => function () use (&$beacon) {
        $circular = ['url' => '/spoiled'];
        $circular['self'] = &$circular;
        foreach ([$circular, ['props' => ['n' => NAN]], ['props' => ['file' => STDIN]]] as $bad) {
            $beacon->pageview($bad);
            $beacon->event('', $bad);
        }
    },
    'flush' => function (array $given) use (&$beacon) {
        return $beacon->flush((float) $given['seconds']);
    },
    'close' => function () use (&$beacon) {
        $beacon->close();
    },
    'told' => function () use (&$beacon, &$errors) {
        $known = ['dropped' => $beacon->dropped, 'errors' => $errors];
        $errors = [];
        return $known;
    },
];
while (($line = fgets(STDIN)) !== false) {
    $given = json_decode($line, true);
    $does = $given['does'];
    unset($given['does']);
    echo json_encode(['answer' => $commands[$does]($given)]), "\n";
}
