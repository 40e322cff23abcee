const waiting = new EventTarget()
const now = "now"

/** Runs at once everything that waits, for the person who does not want to. */
export const tryNow = (): void => {
  waiting.dispatchEvent(new Event(now))
}

/**
 * Runs once the delay is over and the tab is seen: a hidden tab asks for nothing. Without a delay it runs when the person
 * says so, as with `tryNow` before the delay is over. An abort calls it off.
 */
export const whenVisible = (
  delayMillis: number | undefined,
  run: () => unknown,
  signal: AbortSignal
): void => {
  const wait = new AbortController()
  const runOnce = (): void => {
    wait.abort()
    run()
  }
  const onSeen = (): void => {
    if (!document.hidden) runOnce()
  }
  const onDelayOver = (): void => {
    if (!document.hidden) return runOnce()
    document.addEventListener("visibilitychange", onSeen, { signal: wait.signal })
  }
  const timer = delayMillis === undefined ? undefined : setTimeout(onDelayOver, delayMillis)
  wait.signal.addEventListener("abort", () => clearTimeout(timer))
  waiting.addEventListener(now, runOnce, { signal: wait.signal })
  signal.addEventListener("abort", () => wait.abort(), { signal: wait.signal })
}
