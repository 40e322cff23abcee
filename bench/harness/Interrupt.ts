import { setImmediate as nextTurn } from "node:timers/promises"

/** The run was ended by a signal. */
export class Interrupted extends Error {
  constructor() {
    super("interrupted")
  }
}

/** The exit code of an interrupted run, as a shell has it for SIGINT. */
export const interruptedStatus = 130

/** One press of a key comes twice or thrice: from the terminal, and from the programs that started this one. */
const onePressMillis = 500

/**
 * Fires at an interrupt: the run ends with its table. A second interrupt ends this process at once, and the reaper does the
 * rest. A run whose starter was killed ends as if interrupted, and does not go on unseen.
 */
export const interruptSignal = (): AbortSignal => {
  const interrupt = new AbortController()
  let firstAt = 0
  const onSignal = (): void => {
    if (interrupt.signal.aborted && performance.now() - firstAt > onePressMillis)
      process.exit(interruptedStatus)
    if (interrupt.signal.aborted) return
    firstAt = performance.now()
    interrupt.abort()
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, onSignal)
  const starter = process.ppid
  setInterval(() => process.ppid !== starter && interrupt.abort(), 500).unref()
  return interrupt.signal
}

/** Whether an interrupt came. A terminal interrupts programs that are waited for, too: their end may be heard of first. */
export const wasInterrupted = async (signal: AbortSignal): Promise<boolean> => {
  await nextTurn()
  return signal.aborted
}

export const failIfAborted = (signal: AbortSignal | undefined): void => {
  if (signal?.aborted === true) throw new Interrupted()
}

/** Rejects when the signal fires, even if the work goes on. */
export const unlessAborted = async <A>(signal: AbortSignal | undefined, work: Promise<A>): Promise<A> => {
  if (signal === undefined) return work
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(new Interrupted())
  if (signal.aborted) onAbort()
  signal.addEventListener("abort", onAbort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener("abort", onAbort)
  }
}
