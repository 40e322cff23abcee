import { Context, Effect, Layer } from "effect"
import type { Limits } from "#src/Limits.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import type { Reaction } from "#test/harness/HttpReceiver.ts"
import { ListServer, sends } from "./ListServer.ts"
import { trappedList } from "./UpstreamModels.ts"

/** The upstream of the server under test: the test sets its list. */
export class TestUpstream extends Context.Service<TestUpstream, ListServer>()("signalbox/test/TestUpstream") {
  static readonly layer = (answering: Reaction) =>
    Layer.effect(
      TestUpstream,
      Effect.map(ListServer.make, (server) => {
        server.otherwise = answering
        return server
      })
    )
}

/** The whole server over an upstream that lists the models with the traps, or answers otherwise. */
export const catalogueServer = (limits: Partial<Limits> = {}, answering: Reaction = sends(trappedList)) =>
  Layer.unwrap(
    Effect.map(TestUpstream, ({ url }) => TestServer.own({ upstreamUrl: url, logLevel: "Fatal", limits }))
  ).pipe(Layer.provideMerge(TestUpstream.layer(answering)))
