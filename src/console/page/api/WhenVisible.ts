const waiting = new EventTarget()
const now = "now"

/** Runs all waiting calls at once, when the user does not want to wait. */
export const tryNow = (): void => {
  waiting.dispatchEvent(new Event(now))
}

/**
 * Runs once the delay is over and the tab is visible: a hidden tab asks for nothing. Without a delay it runs on
 * `tryNow`, which also shortens a delay. An abort cancels it.
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
