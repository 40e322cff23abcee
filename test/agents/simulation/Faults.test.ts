import { assert, describe, it } from "@effect/vitest"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { type Extent, type Faults, play } from "./Scene.ts"
import { stages } from "./SimulatedClient.ts"

/**
 * A scripted session under every fault, with the real gateway and sessions: the transcript ends the same, nothing that
 * a client was told of is lost or doubled, and no command or edit is carried out twice. `AGENT_FAULTS=all` puts every
 * fault everywhere, `AGENT_FAULT_RUNS` says how many random mixtures of them are played.
 */
const seed = Number(process.env["SIMULATION_SEED"] ?? Math.trunc(Math.random() * 1e9))
const isWhole = process.env["AGENT_FAULTS"] === "all"
const mixtures = Number(process.env["AGENT_FAULT_RUNS"] ?? 25)
const random = new SeededRandom(seed)

const pick = <A>(all: ReadonlyArray<A>): A => {
  const one = all[random.below(all.length)]
  if (one === undefined) throw new Error("Nothing to pick from")
  return one
}

/** All of them by hand, some of them every time. */
const some = <A>(all: ReadonlyArray<A>, count: number): ReadonlyArray<A> =>
  isWhole ? all : Array.from({ length: count }, () => pick(all))

const played = async (faults: Faults): Promise<Extent> => {
  try {
    return await play(faults)
  } catch (error) {
    throw new Error(`SIMULATION_SEED=${seed} ${JSON.stringify(faults)}: ${String(error)}`, { cause: error })
  }
}

const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, at) => at + 1)

describe("an agent session under faults", { timeout: 600_000 }, () => {
  it("comes to its end without any", async () => {
    const { calls, frames, writes } = await played({})
    assert.strictEqual(calls, 5)
    assert.isAbove(frames, 30)
    assert.isAbove(writes, 8)
  })

  it("survives a connection that is cut before any frame", async () => {
    const { frames } = await played({})
    for (const cut of some(upTo(frames), 12)) await played({ cuts: [cut] })
  })

  it("survives a server that is killed before or after anything is stored", async () => {
    const { writes } = await played({})
    const kills = upTo(writes).flatMap((write) =>
      (["before", "after"] as const).map((when) => ({ write, when }))
    )
    for (const kill of some(kills, 12)) await played({ kills: [kill] })
  })

  it("survives a client that is killed at any stage of any call, and comes back here or on another machine", async () => {
    const { calls } = await played({})
    const deaths = upTo(calls).flatMap((call) =>
      stages.flatMap((stage) => [true, false].map((elsewhere) => ({ call, stage, elsewhere })))
    )
    for (const death of some(deaths, 12)) await played({ deaths: [death] })
  })

  it("survives a server and a client that are killed during the same call", async () => {
    const { calls, writes } = await played({})
    const both = upTo(calls).flatMap((call) =>
      upTo(writes * 2).flatMap((write) =>
        stages.flatMap((stage) =>
          [true, false].map((elsewhere): Faults => {
            return {
              deaths: [{ call, stage, elsewhere }],
              kills: [{ write, when: pick(["before", "after"]) }]
            }
          })
        )
      )
    )
    for (const faults of some(both, 40)) await played(faults)
  })

  it("survives mixtures of them", async () => {
    const { calls, frames, writes } = await played({})
    for (let run = 0; run < mixtures; run++) {
      const several = <A>(make: () => A): ReadonlyArray<A> => Array.from({ length: random.below(4) }, make)
      await played({
        cuts: several(() => 1 + random.below(frames * 2)),
        kills: several(() => ({ write: 1 + random.below(writes * 2), when: pick(["before", "after"]) })),
        deaths: several(() => ({
          call: 1 + random.below(calls),
          stage: pick(stages),
          elsewhere: random.below(2) === 0
        }))
      })
    }
  })
})
