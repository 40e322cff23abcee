// An application of Node with the client in it, controlled by a line of JSON a time (see ClientHost.ts).
import { createServer } from "node:http"
import process from "node:process"
import { createInterface } from "node:readline"

const [clientPath] = process.argv.slice(2)
const { Beacon, fromRequest } = await import(clientPath)

let beacon
const errors = []

const commands = {
  make: ({ secret, url, delaySeconds, queueMax, closeSeconds, listens }) => {
    beacon = new Beacon({
      secret,
      ...(url === undefined ? {} : { url }),
      ...(delaySeconds === undefined ? {} : { delayMillis: delaySeconds * 1000 }),
      ...(queueMax === undefined ? {} : { queueMax }),
      ...(closeSeconds === undefined ? {} : { closeMillis: closeSeconds * 1000 }),
      onError: ({ message, events }) => {
        errors.push({ message, urls: events.map((event) => event?.url ?? "") })
        if (listens === "badly") throw new Error("a listener's own mistake")
      }
    })
  },
  record: ({ events }) => {
    for (const { name = "pageview", ...event } of events) {
      if (name === "pageview") beacon.pageview(event)
      else beacon.event(name, event)
    }
  },
  spoil: () => {
    const circular = { url: "/circular" }
    circular.self = circular
    for (const bad of [circular, { url: "/bigint", props: { n: 1n } }, undefined, null, 7, "text", []]) {
      beacon.pageview(bad)
      beacon.event(undefined, bad)
    }
  },
  flush: ({ seconds }) => beacon.flush(seconds * 1000),
  close: () => beacon.close(),
  told: () => ({ dropped: beacon.dropped, errors: errors.splice(0) }),
  fromRequest: ({ request }) => fromRequest(request),
  serve: () =>
    new Promise((resolve) => {
      const server = createServer((request, response) => {
        beacon.pageview(fromRequest(request))
        response.end("served")
      })
      server.listen(0, "127.0.0.1", () => resolve(server.address().port))
    })
}

for await (const line of createInterface({ input: process.stdin })) {
  const { does, ...given } = JSON.parse(line)
  const answer = await commands[does](given)
  process.stdout.write(`${JSON.stringify({ answer: answer ?? null })}\n`)
}
