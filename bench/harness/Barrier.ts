/**
 * The barrier of a comparison whose sides measure side by side: each part of a window begins once both are there, so that
 * whatever the machine does hits both alike. A side may be another process, which asks for the barrier by messages.
 */

/** Waits for the other side; answers whether both are ready, each by its own word. A side that is alone does not wait. */
export type Meet = (isReady: boolean) => Promise<boolean>

export const alone: Meet = (isReady) => Promise.resolve(isReady)

export interface Barrier {
  readonly meetOf: (side: number) => Meet
  /** the side comes no more: the other one is alone from now on */
  readonly leave: (side: number) => void
}

interface Waiting {
  readonly isReady: boolean
  readonly go: (areReady: boolean) => void
}

/** For two sides. */
export const makeBarrier = (): Barrier => {
  const waiting = new Map<number, Waiting>()
  const left = new Set<number>()
  const look = (): void => {
    if (waiting.size + left.size < 2) return
    const there = Array.from(waiting.values())
    waiting.clear()
    for (const { go } of there) go(there.every(({ isReady }) => isReady))
  }
  return {
    meetOf: (side) => (isReady) =>
      new Promise((go) => {
        waiting.set(side, { isReady, go })
        look()
      }),
    leave: (side) => {
      left.add(side)
      look()
    }
  }
}

/** Messages of a process that measures, and of the one that knows the barrier. */
export interface MeetRequest {
  readonly barrier: "there"
  readonly isReady: boolean
}
export interface MeetAnswer {
  readonly barrier: "go"
  readonly areReady: boolean
}

export const isMeetRequest = (message: object): message is MeetRequest =>
  "barrier" in message && message.barrier === "there"

export const isMeetAnswer = (message: object): message is MeetAnswer =>
  "barrier" in message && message.barrier === "go"

/** In the process that measures: asks its parent. */
export const meetByParent: Meet = (isReady) =>
  new Promise((resolve) => {
    const onMessage = (message: object): void => {
      if (!isMeetAnswer(message)) return
      process.off("message", onMessage)
      resolve(message.areReady)
    }
    process.on("message", onMessage)
    process.send?.({ barrier: "there", isReady } satisfies MeetRequest)
  })

/** In its parent. Give it every request that comes from the child. */
export const answersMeets =
  (meet: Meet, send: (answer: MeetAnswer) => void) =>
  async ({ isReady }: MeetRequest): Promise<void> =>
    send({ barrier: "go", areReady: await meet(isReady) })
