import { Effect } from "effect"
import { HttpReceiver, type Reaction } from "#test/harness/HttpReceiver.ts"

/** A whole list. */
export const sends = (body: string, status = 200): Reaction => ({
  status,
  headers: { "content-type": "application/json" },
  body
})

/** A list that breaks off: the connection is cut after so many bytes of the body that the head has promised. */
export const breaksOff = (body: string, cutAfterBytes: number): Reaction => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body,
  cutAfterBytes
})

/** A list in pieces without a length, as long as it is read. */
export const sendsWithoutEnd: Reaction = (_, response) => {
  response.writeHead(200, { "content-type": "application/json" })
  const piece = Buffer.alloc(64 * 1024, " ")
  const more = (): void => {
    while (!response.destroyed && response.write(piece)) continue
  }
  response.on("drain", more)
  more()
}

export const staysSilent: Reaction = "hang"

/** An upstream over real sockets, that answers as the test says and can go away and come back on its port. */
export class ListServer extends HttpReceiver {
  /** the API's root, as `UPSTREAM_URL` has it */
  get url(): string {
    return `${this.origin}/api/v1`
  }

  /** method and path of each request */
  get requests(): ReadonlyArray<string> {
    return this.received.map(({ method, path }) => `${method} ${path}`)
  }

  /** Open until the scope closes. */
  static readonly make = Effect.acquireRelease(
    Effect.promise(async () => {
      const server = new ListServer(sends("{}", 404))
      await server.open()
      return server
    }),
    (server) => Effect.promise(() => server.close())
  )
}
