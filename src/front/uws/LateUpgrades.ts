import { connect, type Socket } from "node:net"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import type { UwsAddon, UwsResponse } from "./Addon.ts"

/**
 * WebSockets that are made of requests whose handler has returned. When the callback of uWebSockets.js's `cork` is done,
 * `cork` looks at the state of its request, which is memory of a WebSocket by then, and at times closes the connection for
 * what it finds there (uNetworking/uWebSockets, 1929). Within the cork of another connection it does not look. So there is
 * one for that: from this process to itself, with a request that is never answered. Without such a connection upgrades are
 * made as the manual has it.
 */
export class LateUpgrades {
  held: UwsResponse | undefined

  upgrade(response: UwsResponse, handshake: (response: UwsResponse) => void): void {
    const corked = () => void response.cork(() => handshake(response))
    if (this.held === undefined) corked()
    else this.held.cork(corked)
  }
}

/** Ready once the request is held; an app of its own keeps it out of the counts of the front. */
export const make = (addon: UwsAddon): Effect.Effect<LateUpgrades, never, Scope> =>
  Effect.gen(function* () {
    const app = yield* Effect.acquireRelease(
      Effect.sync(() => addon.App()),
      (acquired) => Effect.sync(() => void acquired.close())
    )
    const request = new LateUpgrades()
    yield* Effect.acquireRelease(
      Effect.callback<Socket | undefined>((resume) => {
        let client: Socket | undefined
        app.any("/*", (response) => {
          if (request.held !== undefined) return void response.close()
          response.onAborted(() => {
            request.held = undefined
          })
          request.held = response
          resume(Effect.succeed(client))
        })
        app.listen("127.0.0.1", 0, addon.LIBUS_LISTEN_EXCLUSIVE_PORT, (listener) => {
          if (listener === false) return resume(Effect.succeed(undefined))
          client = connect({ port: addon.us_socket_local_port(listener), host: "127.0.0.1" })
          client.once("error", () => resume(Effect.succeed(undefined)))
          client.once("connect", () => addon.us_listen_socket_close(listener))
          client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
          client.unref()
        })
      }),
      (client) => Effect.sync(() => client?.destroy())
    )
    return request
  })
