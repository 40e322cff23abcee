import { Effect, Layer, ManagedRuntime } from "effect"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { type ModelAsk, ModelCalls } from "#actors/agents/ModelCalls.ts"
import { StepStore } from "#actors/agents/StepStore.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { Credentials } from "#src/accounts/Credentials.ts"
import { Sockets } from "#src/agents/gateway/Sockets.ts"
import { SessionPlacement } from "#src/agents/SessionPlacement.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import { limits } from "#src/Limits.ts"
import { ModelAccess } from "#src/llm/ModelAccess.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"
import { answerOf, type Turn } from "./Script.ts"
import { type SimulatedDatabase, storeOf } from "./SimulatedStore.ts"

export const key: Principal = {
  id: "key_1",
  keyId: "key_1",
  keyName: "one",
  kind: "account",
  ownerId: "usr_1",
  scopes: ["full"],
  expiresAt: null,
  role: "user",
  models: null,
  collections: null,
  rateLimitPerMinute: null
}

const model = { id: "scripted", name: "Scripted", context_length: 100_000 }

/** @param looksUp what happens while it is looked up who pays */
const offerOf = (looksUp: () => Effect.Effect<void>) =>
  Layer.succeed(ModelAccess, {
    models: () => [model],
    modelOf: () => model,
    defaultModel: () => Effect.succeed(model),
    billing: () =>
      Effect.as(Effect.suspend(looksUp), { mode: "credits", plan: null, covers_direct_api: false } as const),
    mayThink: () => false,
    seesImages: () => false,
    affordable: () => undefined,
    mayStart: () => Effect.succeed(true)
  })

/** Of the accounts only this is asked. */
const credentials = Layer.mock(Credentials)({ recall: () => undefined, holder: () => key })

/** A server with the real gateway and sessions over the simulated database, with a model that keeps to a script. */
export class SimulatedServer {
  /** happens while a hello is answered, before its client is attached */
  duringHello: Effect.Effect<void> = Effect.void
  #isDead = false
  readonly #runtime: ManagedRuntime.ManagedRuntime<Sockets | AgentSessions, never>
  #serve: ((sink: FrameSink) => HotSocketListener) | undefined

  constructor(database: SimulatedDatabase, script: ReadonlyArray<Turn>) {
    const models = Layer.succeed(ModelCalls, {
      call: (ask: ModelAsk) => answerOf(script, ask),
      contextLength: () => model.context_length
    })
    const quick = { ...limits, agentCancelMillis: 200, agentRetryMillis: 1, agentSeqReserve: 200 }
    const services = Sockets.layer.pipe(
      Layer.provideMerge(AgentSessions.layer({ limits: quick, newId })),
      Layer.provide(
        Layer.succeed(
          StepStore,
          storeOf(database, () => this.#isDead)
        )
      ),
      Layer.provide([
        models,
        offerOf(() => this.duringHello),
        credentials,
        SessionPlacement.layerAlone,
        AppConfig.layerOf({})
      ])
    )
    this.#runtime = ManagedRuntime.make(services)
  }

  async start(): Promise<void> {
    const { serve } = await this.#runtime.runPromise(Sockets)
    this.#serve = (sink) => serve(key, sink)
  }

  run<A, E>(use: (sessions: AgentSessions["Service"]) => Effect.Effect<A, E>): Promise<A> {
    return this.#runtime.runPromise(Effect.flatMap(AgentSessions, use))
  }

  get isDead(): boolean {
    return this.#isDead
  }

  connect(sink: FrameSink): HotSocketListener | undefined {
    return this.#isDead ? undefined : this.#serve?.(sink)
  }

  /** As kill -9: nothing more is sent. */
  kill(): void {
    this.#isDead = true
  }

  /** Drops all that a killed process loses. */
  dispose(): Promise<void> {
    this.#isDead = true
    return this.#runtime.dispose()
  }
}
