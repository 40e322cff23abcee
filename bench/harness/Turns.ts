/**
 * Two sides of a comparison that measure in turns: both have their servers up and warm, and measure one short window after
 * the other in the order A B B A A B …, so that a change of the machine's speed hits both alike. A side may be another
 * process: its turns are then asked for and given by messages.
 */

/** Waits for the turn, does the work, and gives the turn on. */
export type Turn = <A>(work: () => Promise<A>) => Promise<A>

/** Of a side that is alone. */
export const always: Turn = (work) => work()

export interface Turns {
  readonly turnOf: (side: number) => Turn
  /** the side takes no more turns: the other one need not wait for it */
  readonly ended: (side: number) => void
}

/** The first turn is that of side `first`. */
export const makeTurns = (first = 0): Turns => {
  let given = 0
  let isTaken = false
  const hasEnded = [false, false]
  const waiting: Array<{ readonly side: number; readonly begin: () => void }> = []
  /** A B B A A B B A … */
  const nextSide = (): number => (first + ((given + 1) >> 1)) % 2
  const give = (): void => {
    if (isTaken) return
    const index = waiting.findIndex(({ side }) => side === nextSide() || hasEnded[1 - side] === true)
    const [next] = index < 0 ? [] : waiting.splice(index, 1)
    if (next === undefined) return
    isTaken = true
    next.begin()
  }
  return {
    turnOf: (side) => async (work) => {
      await new Promise<void>((begin) => {
        waiting.push({ side, begin })
        give()
      })
      try {
        return await work()
      } finally {
        isTaken = false
        given++
        give()
      }
    },
    ended: (side) => {
      hasEnded[side] = true
      give()
    }
  }
}

/** Messages of a process that measures, and of the one that gives it its turns. */
export type TurnRequest = { readonly turn: "ask" } | { readonly turn: "end" }
export type TurnGrant = { readonly turn: "begin" }

export const isTurnRequest = (message: object): message is TurnRequest =>
  "turn" in message && message.turn !== "begin"

/** The side of the process that measures: asks its parent. */
export const turnFromParent: Turn = async (work) => {
  const begun = new Promise<void>((resolve) => {
    const onMessage = (message: object): void => {
      if (!("turn" in message)) return
      process.off("message", onMessage)
      resolve()
    }
    process.on("message", onMessage)
  })
  process.send?.({ turn: "ask" } satisfies TurnRequest)
  await begun
  try {
    return await work()
  } finally {
    process.send?.({ turn: "end" } satisfies TurnRequest)
  }
}

/** The other side: answers a child's requests by a turn. Give it every request that comes from the child. */
export const givesTurns = (
  turn: Turn,
  send: (grant: TurnGrant) => void
): ((request: TurnRequest) => void) => {
  let end: () => void = () => undefined
  return (request) => {
    if (request.turn === "end") return end()
    void turn(
      () =>
        new Promise<void>((resolve) => {
          end = resolve
          send({ turn: "begin" })
        })
    )
  }
}
