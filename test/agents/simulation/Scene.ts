import { assert } from "@effect/vitest"
import type { ToolRequest } from "#schemas/agents/ServerFrame.ts"
import type { MessageStep, ResultStep, Step, StepBody } from "#streams/agents/Step.ts"
import { script } from "./Script.ts"
import { type Effects, Machine, SimulatedClient, type Stage } from "./SimulatedClient.ts"
import { SimulatedServer } from "./SimulatedServer.ts"
import { SimulatedDatabase } from "./SimulatedStore.ts"

/** The faults of a scene. Numbers count from 1. */
export interface Faults {
  /** the connection is cut before these frames, counted both ways */
  readonly cuts?: ReadonlyArray<number>
  /** the server is killed at these writes */
  readonly kills?: ReadonlyArray<{ readonly write: number; readonly when: "before" | "after" }>
  /** the client is killed at a stage of these calls, counted as they are asked for */
  readonly deaths?: ReadonlyArray<{
    readonly call: number
    readonly stage: Stage
    readonly elsewhere: boolean
  }>
}

/** The length of a scene, so that faults can be put everywhere. */
export interface Extent {
  readonly frames: number
  readonly writes: number
  readonly calls: number
}

const roundsMax = 2_000

/** Plays the script under faults to its end, and holds what came of it to what must. */
export const play = async (faults: Faults): Promise<Extent> => {
  const database = new SimulatedDatabase()
  const effects: Effects = new Map()
  const counter = { frames: 0 }
  const servers: Array<SimulatedServer> = []
  const clients: Array<SimulatedClient> = []
  const asked: Array<string> = []
  let machine = new Machine("journal-1")
  const kills = [...(faults.kills ?? [])]
  const deaths = [...(faults.deaths ?? [])]
  database.onWrite = (write, when) => {
    const at = kills.findIndex((kill) => kill.write === write && kill.when === when)
    if (at < 0) return
    kills.splice(at, 1)
    for (const server of servers) server.kill()
  }
  const dies = ({ callId }: ToolRequest, stage: Stage): boolean => {
    if (!asked.includes(callId)) asked.push(callId)
    const at = deaths.findIndex((death) => death.stage === stage && asked[death.call - 1] === callId)
    const [death] = at < 0 ? [] : deaths.splice(at, 1)
    if (death?.elsewhere === true) machine = new Machine(`journal-${deaths.length + 2}`)
    return death !== undefined
  }
  const isCut = (frame: number): boolean => faults.cuts?.includes(frame) === true

  for (let round = 0; round < roundsMax; round++) {
    let server = servers.at(-1)
    if (server === undefined || server.isDead) {
      server = new SimulatedServer(database, script)
      servers.push(server)
      await server.start()
      // The connection to the one before is gone with it.
      clients.at(-1)?.drop()
    }
    let client = clients.at(-1)
    if (client === undefined || client.isDead) {
      // A client that begins anew knows of its session, and of nothing that it showed.
      client = new SimulatedClient(
        machine,
        effects,
        { isCut, dies },
        counter,
        client?.sessionId ?? only(database)
      )
      clients.push(client)
    }
    if (client.isDone) break
    if (!client.isConnected) client.connect(server)
    await new Promise((resolve) => setImmediate(resolve))
  }
  try {
    judge(database, clients, effects, faults)
  } finally {
    for (const server of servers) await server.dispose()
  }
  return { frames: counter.frames, writes: database.writes, calls: asked.length }
}

const only = (database: SimulatedDatabase): string | undefined => [...database.sessions.keys()].at(-1)

const judge = (
  database: SimulatedDatabase,
  clients: ReadonlyArray<SimulatedClient>,
  effects: Effects,
  faults: Faults
): void => {
  const last = clients.at(-1)
  assert.isTrue(last?.isDone, "the prompt came to its end")
  const steps = database.sessions.get(last?.sessionId ?? "")?.steps ?? []
  const bodies = steps.map(({ body }) => body)
  assert.deepStrictEqual(
    steps.map(({ index }) => index),
    steps.map((_, at) => at),
    "steps without holes"
  )
  const messages = bodies.filter((body): body is MessageStep => body.kind === "message")
  assert.deepStrictEqual(
    messages.map(({ content }) => content.find((part) => part.type === "text")?.text),
    script.map(({ words }) => words.join("")),
    "every message once, in order"
  )
  judgeResults(messages, bodies, effects, faults)
  assert.strictEqual(bodies.filter(({ kind }) => kind === "prompt").length, 1, "the prompt once")
  const done = bodies.filter((body) => body.kind === "done")
  assert.strictEqual(done.length, 1, "its end once")
  assert.strictEqual(done[0]?.cost, String(7 * script.length), "every answer paid once")
  for (const client of clients) judgeClient(client, steps)
}

const judgeResults = (
  messages: ReadonlyArray<MessageStep>,
  bodies: ReadonlyArray<StepBody>,
  effects: Effects,
  { deaths = [] }: Faults
): void => {
  const results = bodies.filter((body): body is ResultStep => body.kind === "result")
  const calls = messages.flatMap(({ content }) => content.filter((part) => part.type === "tool_call"))
  assert.deepStrictEqual(
    results.map(({ callId }) => callId).toSorted(),
    calls.map(({ callId }) => callId).toSorted(),
    "one result for every call"
  )
  for (const { callId, tool } of calls) {
    const result = results.find((one) => one.callId === callId)
    const times = effects.get(callId) ?? 0
    if (tool === "bash" || tool === "edit") {
      assert.isAtMost(times, 1, `${tool} ${callId} took effect once at most`)
      if (result?.ok === true)
        assert.strictEqual(times, 1, `${tool} ${callId} took effect as its result says`)
      else assert.strictEqual(result?.error?.code, "interrupted")
      if (deaths.length === 0) assert.isTrue(result?.ok, "nothing is interrupted while the client lives")
    } else assert.isTrue(result?.ok, `${tool} has its result`)
  }
}

/** Checks that every step reached a client that was there to its end. */
const judgeClient = (client: SimulatedClient, steps: ReadonlyArray<Step>): void => {
  assert.deepStrictEqual(client.faults, [])
  if (!client.isDone) return
  const announced = steps.filter(({ body, seq }) => seq > 0 && body.kind !== "queued").map(({ seq }) => seq)
  const seen = client.seen.map(({ seq }) => seq)
  assert.deepStrictEqual(
    announced.filter((seq) => !seen.includes(seq)),
    [],
    "nothing announced was missed"
  )
  assert.deepStrictEqual(
    seen,
    [...new Set(seen)].toSorted((a, b) => a - b),
    "no frame twice, none out of order"
  )
}
